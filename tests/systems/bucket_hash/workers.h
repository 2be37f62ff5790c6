// A partition that several worker threads serve, as the tests need it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {

// Starts the workers of a store at ports 0 to config.workers - 1 of node 0. The first one opens it;
// the others serve it from then on. Must outlive the run.
class SharedStore {
 public:
  SharedStore(Platform& platform, const KvSystem& system, KvConfig config)
      : system_(system),
        config_(std::move(config)),
        opened_(platform.create_barrier(config_.workers)) {
    for (std::uint32_t worker = 0; worker < config_.workers; ++worker) {
      platform.start_service(0, static_cast<fabric::Port>(worker), CompletionMode::polling,
                             [this, worker](Thread& thread) { return serve(thread, worker); });
    }
  }

  // Once it is open.
  Bytes capacity() const { return shared_->space().capacity; }
  Bytes first_capacity() const { return first_capacity_; }

 private:
  Task<> serve(Thread& thread, std::uint32_t worker) {
    std::unique_ptr<KvPartition> partition;  // of the first one
    if (worker == 0) {
      partition = system_.open(thread, "pool", config_);
      shared_ = partition.get();
      first_capacity_ = capacity();
    }
    co_await opened_->arrive_and_wait();
    if (partition) {
      co_await partition->serve();
    } else {
      co_await shared_->serve_also(thread);
    }
  }

  const KvSystem& system_;
  KvConfig config_;
  std::unique_ptr<Platform::Barrier> opened_;
  KvPartition* shared_ = nullptr;
  Bytes first_capacity_ = 0;
};

inline std::vector<std::string> systems_with_workers() {
  std::vector<std::string> names;
  for (const KvSystem& system : kv_systems()) {
    if (system.shares_partition) names.emplace_back(system.name);
  }
  return names;
}

// Names of tests have no dashes.
inline std::string test_name(std::string name, std::uint32_t workers) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + std::to_string(workers);
}

// Small enough that a few items make it resize, as often as it may.
inline KvConfig resizing_config(const KvSystem& system, std::uint32_t workers,
                                std::uint64_t resizes) {
  KvConfig config = fit(system, {.key_size = 16,
                                 .value_size = 15,
                                 .max_value_size = 15,
                                 .records = 16,
                                 .writes = 1000,
                                 .sessions = 8,
                                 .workers = workers,
                                 .parameters = {}});
  config.parameters["resizes"] = resizes;
  if (system.name == "continuity") {
    config.parameters["buckets"] = 4;
    config.parameters["sbuckets"] = 1;
  } else if (system.name == "p-farm-kv") {
    config.parameters["buckets"] = 2;
    config.parameters["overflow_percent"] = 50;
  } else if (system.name == "level") {
    config.parameters["top_buckets"] = 4;
  }
  return config;
}

}  // namespace perdura::systems::test
