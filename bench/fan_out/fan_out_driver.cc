#include "bench/fan_out/fan_out_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/client_server.h"
#include "bench/driver/systems.h"
#include "bench/fan_out/fan_out_run.h"
#include "platform/base/error.h"

namespace perdura::bench {

using harness::Point;

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

constexpr Parameter kParameters[] = {
    {.name = "operations", .type = Count{1, kMost}, .what = "writes that are measured"},
    {.name = "warmup", .type = Count{0, kMost}, .usual = 0, .what = "writes before that"},
    {.name = "value_size",
     .type = Count{16, 1 << 20},
     .usual = 4096,
     .identifies = true,
     .unit = "bytes",
     .what = "bytes of a write"},
    {.name = "replicas",
     .type = Count{1, 64},
     .usual = 3,
     .identifies = true,
     .noun = "replicas",
     .title = "Replicas",
     .what = "nodes that get each write"},
    {.name = "queue_depth",
     .type = Count{1, 32},
     .usual = 1,
     .identifies = true,
     .what = "writes under way"},
};

struct WayOfSending {
  std::string_view name;
  std::string_view title;
  bool is_multicast;
};
constexpr std::array kWays{WayOfSending{"writes", "A WRITE to each", false},
                           WayOfSending{"multicast", "One multicast WRITE", true}};

}  // namespace

std::span<const Parameter> FanOutDriver::parameters() const { return kParameters; }

std::vector<harness::DriverDeclarations::System> FanOutDriver::systems() const {
  std::vector<harness::DriverDeclarations::System> declared;
  for (const WayOfSending& each : kWays) declared.push_back({each.name, {}, each.title});
  return declared;
}

void FanOutDriver::prepare(Point& point, const harness::Locations&) const {
  point.operations = point.settings.number("operations") + point.settings.number("warmup");
}

void FanOutDriver::check(const Point& point) const {
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(
        fmt::format("{}: writes to replicas are not recorded over time; remove [timeline]",
                    point.settings.system.where));
  }
  std::vector<std::string_view> known;
  for (const WayOfSending& each : kWays) known.push_back(each.name);
  if (std::find(known.begin(), known.end(), point.settings.system.text) == known.end()) {
    throw UsageError(no_such_system(point, known));
  }
}

void FanOutDriver::check_platform(std::string_view platform, const std::string& where) const {
  if (platform == "sim") return;
  throw UsageError(fmt::format("{}: no device has a multicast WRITE; use platform sim", where));
}

harness::Roles FanOutDriver::roles(const harness::PointSettings& settings, NodeId) const {
  const auto replicas = settings.number_if_given("replicas").value_or(1);
  return client_server(1, static_cast<NodeId>(replicas));
}

harness::Measurement FanOutDriver::run(Platform& platform, const Point& point) const {
  const auto way = std::find_if(kWays.begin(), kWays.end(), [&](const WayOfSending& each) {
    return each.name == point.settings.system.text;
  });
  return FanOutRun(platform, point, way->is_multicast).execute();
}

}  // namespace perdura::bench
