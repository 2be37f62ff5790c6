// Systems whose partitions several worker threads serve, and tables that grow often.
#pragma once

#include <algorithm>
#include <string>

#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/shared_store.h"

namespace perdura::systems::test {

inline std::vector<std::string> systems_with_workers() {
  std::vector<std::string> names;
  for (const kv::KvSystem& system : kv_systems()) {
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
inline kv::KvConfig resizing_config(const kv::KvSystem& system, std::uint32_t workers,
                                    std::uint64_t resizes) {
  kv::KvConfig config = fit(system, {.key_size = 16,
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
