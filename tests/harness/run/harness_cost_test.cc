// The harness' own cost can be measured for whatever workload, and where the platform measures it
// is. How much it is, bench/micro says.
#include "bench/kv/harness_cost.h"
#include "bench/client_server.h"

#include <gtest/gtest.h>

#include "bench/kv/kv_driver.h"
#include "bench/kv/kv_parameters.h"
#include "bench/ycsb/point_workload.h"
#include "platform/shm/shm_platform.h"
#include "systems/registry/registry.h"

namespace perdura::bench {
namespace {

using ycsb::OperationKind;

harness::Point point_of(std::initializer_list<std::pair<OperationKind, double>> shares) {
  harness::Point point(kv_parameters());
  point.roles = bench::client_server(1);
  ycsb::WorkloadSpec& spec = own_workload(point).spec;
  spec.record_count = 1000;
  spec.operation_count = 100;
  spec.key_size = 16;
  spec.field_count = 1;
  spec.field_length = 100;
  spec.proportions = {};
  for (const auto& [kind, part] : shares) {
    own_workload(point).spec.proportions[static_cast<std::size_t>(kind)] = part;
  }
  return point;
}

Picoseconds cost_of(const harness::Point& point) {
  Picoseconds cost{};
  ShmPlatform platform(ShmOptions{});
  platform.start(0, 0, CompletionMode::event,
                 [&](Thread&) -> Task<> { cost = co_await harness_cost(point); });
  platform.run();
  return cost;
}

// An operation that failed would throw.
TEST(HarnessCost, CanBeMeasuredForEveryKindOfWorkload) {
  for (const auto& shares :
       {std::initializer_list<std::pair<OperationKind, double>>{{OperationKind::read, 1}},
        {{OperationKind::insert, 1}},
        {{OperationKind::erase, 1}},
        {{OperationKind::update, 0.5}, {OperationKind::read_modify_write, 0.5}},
        {{OperationKind::insert, 0.4}, {OperationKind::erase, 0.4}, {OperationKind::read, 0.2}}}) {
    for (const std::uint32_t value_size : {0U, 1U, 100U, 1U << 16}) {
      for (const std::uint32_t key_size : {1U, 2U, 7U, 8U, 40U}) {
        for (const char* load : {"closed", "fixed", "poisson"}) {
          harness::Point point = point_of(shares);
          ycsb::WorkloadSpec& spec = own_workload(point).spec;
          spec.field_length = value_size;
          spec.key_size = key_size;
          spec.record_count = 100;
          point.settings.set("load", load);
          if (point.settings.text("load") != "closed") point.settings.set("offered_load", 10);
          EXPECT_GT(cost_of(point), Picoseconds{}) << value_size << ' ' << key_size << ' ' << load;
        }
      }
    }
  }
}

TEST(HarnessCost, ValuesMayVaryInLength) {
  harness::Point point = point_of({{OperationKind::read, 0.5}, {OperationKind::update, 0.5}});
  own_workload(point).spec.field_count = 3;
  own_workload(point).spec.field_length_distribution = ycsb::LengthDistribution::uniform;
  EXPECT_GT(cost_of(point), Picoseconds{});
}

// Pauses between operations would make it 10 ms an operation.
TEST(HarnessCost, OfAnOpenLoopHasNoPauses) {
  harness::Point point = point_of({{OperationKind::read, 1}});
  point.settings.set("load", "fixed");
  point.settings.set("offered_load", 100);
  EXPECT_LT(cost_of(point), Microseconds(1000));
}

TEST(HarnessCost, IsMeasuredBeforeAPoint) {
  harness::Point point = point_of({{OperationKind::read, 1}});
  point.settings.system.text = "read-after-write";
  point.settings.set("clients", 2);
  ShmPlatform platform({.node_count = 2});
  const auto result = KvDriver(systems::kv_systems()).run(platform, point);
  EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
  EXPECT_GT(result.harness_per_operation, Picoseconds{});
  EXPECT_EQ(result.operations(), 100U) << "and what it did is not part of the point";
}

}  // namespace
}  // namespace perdura::bench
