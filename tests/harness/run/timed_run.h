// Runs of the key-value driver on a store whose service times are known (timed_kv.h), on `sim`.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/client_server.h"
#include "bench/kv/kv_driver.h"
#include "bench/kv/kv_parameters.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "platform/sim/sim_platform.h"
#include "timed_kv.h"

namespace perdura::bench {

class TimedRunTest : public testing::Test {
 protected:
  TimedRunTest() {
    point_.roles = client_server(1);
    point_.settings.system.text = "timed";
    point_.settings.set_completion("client", CompletionMode::polling);
    ycsb::WorkloadSpec& spec = own_workload(point_).spec;
    spec.record_count = 10;
    spec.operation_count = 1000;
    spec.key_size = 16;
    spec.field_count = 1;
    spec.field_length = 16;
    spec.proportions = {};
    spec.proportions[static_cast<std::size_t>(ycsb::OperationKind::read)] = 1;
    point_.parameters["service_ns"] = 10'000;
  }

  void open_loop(std::string load, std::uint64_t rate) {
    point_.settings.set("load", std::move(load));
    point_.settings.set("offered_load", rate);
  }

  harness::Measurement run() {
    static const sim::Profile profile =
        sim::load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml");
    const kv::KvSystem table[] = {test::kTimedKv};
    const KvDriver driver(table);
    driver.check(point_);
    sim::SimPlatform platform(profile, point_.roles.node_count());
    harness::Measurement result = driver.run(platform, point_);
    driver.conclude(point_, result);
    return result;
  }

  static const measure::Histogram& service(const harness::Measurement& measured) {
    return measured.kinds.at(bench::kind_of(ycsb::OperationKind::read)).latency;
  }
  static const measure::Histogram& response(const harness::Measurement& measured) {
    return measured.kinds.at(bench::kind_of(ycsb::OperationKind::read)).response.value();
  }
  static double throughput(const harness::Measurement& measured) {
    return measured.throughput().value_or(0);
  }
  // The last `count` operations that the store has served: those that were measured.
  static std::vector<test::TimedOperation> served(std::size_t count) {
    const auto& all = test::timed_operations();
    return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
  }
  static std::uint64_t nanoseconds(Picoseconds time) {
    return static_cast<std::uint64_t>(time.count() / 1000);
  }

  harness::Point point_{kv_parameters()};
};

}  // namespace perdura::bench
