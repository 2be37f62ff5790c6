// Points of the driver of replicated memory, small ones, for its tests.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "bench/memory/memory_driver.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

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

inline harness::Declarations declarations() {
  const harness::Driver* const drivers[] = {&driver()};
  return harness::declarations_of(drivers);
}

inline std::vector<harness::Point> plan(const std::vector<std::string>& changes = {}) {
  std::vector<harness::Override> overrides;
  for (const std::string& change : changes) overrides.push_back(harness::parse_override(change));
  const harness::Experiment experiment = read_experiment(
      harness::Document::parse(std::string(kText), "x.toml", overrides), declarations());
  return plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), driver(), 1);
}

inline std::string refusal(const std::vector<std::string>& changes) {
  try {
    plan(changes);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

inline harness::Measurement measure(const harness::Point& point, const std::string& platform_name) {
  const auto platform = perdura::test::make_platform(platform_name, point.roles.node_count());
  harness::Measurement result = driver().run(*platform, point);
  driver().conclude(point, result);
  return result;
}

inline std::string system_is(std::string_view name) {
  return fmt::format("matrix.system=[\"{}\"]", name);
}

}  // namespace perdura::bench
