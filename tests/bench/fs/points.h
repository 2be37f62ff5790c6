// Points of the driver of file systems, small ones, for its tests.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "bench/fs/fs_driver.h"
#include "systems/registry/registry.h"
#include "tests/bench/driver_under_test.h"

namespace perdura::bench {

inline constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"fs\"\n"
    "[workload]\n"
    "workload = \"create\"\n"
    "operations = 300\n"
    "warmup = 20\n"
    "completion = \"polling\"\n"
    "[matrix]\n"
    "system = [\"nova\"]\n";

inline const FsDriver& driver() {
  static const FsDriver all(systems::fs_systems(), systems::memory_systems());
  return all;
}

inline const DriverUnderTest& tested() {
  static const DriverUnderTest one(driver(), kText);
  return one;
}

inline std::vector<harness::Point> plan(const std::vector<std::string>& changes = {}) {
  return tested().plan(changes);
}

// One of an experiment that leaves out how long the warm-up is.
inline harness::Point plan_without_warmup(const std::vector<std::string>& changes) {
  static const std::string text = [] {
    std::string without(kText);
    constexpr std::string_view kWarmup = "warmup = 20\n";
    without.erase(without.find(kWarmup), kWarmup.size());
    return without;
  }();
  return DriverUnderTest(driver(), text).plan(changes).front();
}

inline std::string workload_is(std::string_view name) {
  return fmt::format("workload.workload=\"{}\"", name);
}

// So little of everything that a point takes milliseconds.
inline std::vector<std::string> small(std::string_view workload) {
  std::vector<std::string> changes{workload_is(workload), "workload.size=16777216"};
  const auto add = [&](const char* change) { changes.emplace_back(change); };
  if (workload == "stat" || workload == "rename" || workload == "open-read-close") {
    add("workload.files=25");
  }
  if (workload == "utimens") add("workload.files=5");
  if (workload == "varmail" || workload == "fileserver" || workload == "webserver") {
    add("workload.files=60");
    add("workload.file_size=6000");
    add("workload.io_size=4096");
    add("workload.append_size=3000");
    add("workload.threads=2");
  }
  if (workload == "create" || workload == "unlink") add("workload.directory_width=16");
  if (workload.find("read") != workload.npos || workload.find("write") != workload.npos ||
      workload.ends_with("rw") || workload == "fsync") {
    if (workload != "open-read-close") add("workload.file_size=65536");
  }
  if (workload == "mdtest") {
    add("workload.directory_width=2");
    add("workload.file_size=5000");
    add("workload.io_size=4096");
  }
  return changes;
}

}  // namespace perdura::bench
