// Points of the driver of replicated memory, small ones, for its tests.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "bench/memory/memory_driver.h"
#include "systems/registry/registry.h"
#include "tests/bench/driver_under_test.h"

namespace perdura::bench {

inline constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"memory\"\n"
    "[workload]\n"
    "region_size = 65536\n"
    "sync_size = 200\n"
    "alignment = 8\n"
    "operations = 300\n"
    "warmup = 21\n"
    "completion = \"polling\"\n"
    "[matrix]\n"
    "system = [\"m-sync\"]\n";

inline const MemoryDriver& driver() {
  static const MemoryDriver all(systems::memory_systems());
  return all;
}

inline const DriverUnderTest& tested() {
  static const DriverUnderTest one(driver(), kText);
  return one;
}

inline std::vector<harness::Point> plan(const std::vector<std::string>& changes = {}) {
  return tested().plan(changes);
}

inline std::string system_is(std::string_view name) {
  return fmt::format("matrix.system=[\"{}\"]", name);
}

}  // namespace perdura::bench
