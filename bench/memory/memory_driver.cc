#include "bench/memory/memory_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "bench/copies.h"
#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/memory/application_work.h"
#include "bench/memory/failure.h"
#include "bench/memory/memory_parameters.h"
#include "bench/memory/memory_run.h"
#include "bench/memory/recovery_run.h"
#include "bench/memory/sync_points.h"
#include "methods/chooser.h"
#include "platform/base/error.h"

namespace perdura::bench {

using harness::Point;
using services::MemoryConfig;
using services::MemorySystem;

namespace {

// The number of nodes that hold the region, the primary among them.
NodeId node_count(const harness::PointSettings& settings, const MemorySystem& system) {
  return 1 + copies_of(settings, system);
}

void check_failure(const harness::PointSettings& settings, const MemorySystem& system) {
  const Failure failure = failure_of(settings);
  if (failure == Failure::none) return;
  const std::string where = settings.where("failure");
  const std::string& word = settings.text("failure");
  const NodeId nodes = node_count(settings, system);
  if (nodes == 1) {
    throw UsageError(
        fmt::format("{}: failure = \"{}\": {} has no copies to recover from; choose another system",
                    where, word, system.info.name));
  }
  if (failing(failure) >= nodes) {
    throw UsageError(
        fmt::format("{}: failure = \"{}\": {} has no backup; choose another system or failure",
                    where, word, system.info.name));
  }
  if (failure == Failure::mirror_lost && system.backups_follow_mirror) {
    throw UsageError(fmt::format(
        "{}: failure = \"{}\": the backups of {} get nothing without the mirror; choose "
        "mirror-replaced",
        where, word, system.info.name));
  }
  if (settings.number("threads") > 1) {
    throw UsageError(
        fmt::format("{}: failure = \"{}\": a recovery is measured with threads = 1", where, word));
  }
}

}  // namespace

MemoryConfig memory_config(const Point& point, const MemorySystem& system) {
  const harness::PointSettings& settings = point.settings;
  MemoryConfig config;
  config.size = region_size_of(point);
  config.threads = static_cast<std::uint32_t>(settings.number("threads"));
  config.nodes.resize(node_count(settings, system));
  std::iota(config.nodes.begin(), config.nodes.end(), NodeId{0});
  config.completion = settings.completion("primary");
  config.parameters = point.parameters;
  if (settings.text("persistence") == "correct") {
    config.method =
        methods::choose(methods::configurations(stated_server(settings)), *system.update, {});
  }
  return config;
}

std::span<const Parameter> MemoryDriver::parameters() const { return memory_parameters(); }

std::vector<harness::DriverDeclarations::System> MemoryDriver::systems() const {
  return declarations_of(systems_);
}

void MemoryDriver::prepare(Point& point, const harness::Locations&) const {
  point.operations = point.settings.number("operations") + point.settings.number("warmup");
}

void MemoryDriver::check(const Point& point) const {
  const harness::PointSettings& settings = point.settings;
  const MemorySystem& system = system_of(point, systems_);
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(
        fmt::format("{}: replicated memory is not recorded over time; remove [timeline]",
                    settings.system.where));
  }
  check_hash_tables(settings);
  const Bytes part = settings.number("region_size") / settings.number("threads");
  const Bytes needed = settings.number("sync_size");
  if (part < needed) {
    throw UsageError(fmt::format(
        "{}: each thread has a part of the region, {} bytes of it, and syncs {}; raise region_size "
        "or lower threads or sync_size",
        settings.where("sync_size"), part, needed));
  }
  check_failure(settings, system);
  check_server(point, services::info_of(system));
  try {
    system.check(memory_config(point, system));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", settings.system.where, error.what()));
  }
}

harness::Roles MemoryDriver::roles(const harness::PointSettings& settings, NodeId) const {
  std::vector<harness::Role> roles{{"primary", 1}, {"mirror", 1}, {"backup", 1}};
  const auto system = std::find_if(systems_.begin(), systems_.end(), [&](const MemorySystem& each) {
    return each.info.name == settings.system.text;
  });
  if (system == systems_.end()) return roles;  // those of all systems together
  const NodeId nodes = node_count(settings, *system);
  roles.resize(std::min<std::size_t>(nodes, roles.size()));
  if (nodes > roles.size()) roles.back().nodes = nodes - 2;
  return roles;
}

std::vector<schema::Column> MemoryDriver::columns(std::string_view name) const {
  std::vector<schema::Column> columns;
  for (const MemorySystem& system : systems_) {
    if (system.info.name != name) continue;
    add_columns(system.session_metrics, columns);
    add_columns(system.replica_metrics, columns);
    add_columns(kRecoveryMetrics, columns);
  }
  return columns;
}

std::vector<schema::Column> MemoryDriver::columns_of(const Point& point) const {
  std::vector<schema::Column> all = columns(point.settings.system.text);
  if (failure_of(point.settings) == Failure::none) all.resize(all.size() - kRecoveryMetrics.size());
  return all;
}

std::span<const std::string_view> MemoryDriver::columns_if_unusual() const {
  static constexpr std::array<std::string_view, 1> kColumns{"failure"};
  return kColumns;
}

harness::Measurement MemoryDriver::run(Platform& platform, const Point& point) const {
  const MemorySystem& system = system_of(point, systems_);
  if (failure_of(point.settings) != Failure::none) {
    return RecoveryRun(platform, point, system).execute();
  }
  return MemoryRun(platform, point, system).execute();
}

std::optional<Bytes> MemoryDriver::memory(const Point& point) const {
  return region_size_of(point) * node_count(point.settings, system_of(point, systems_));
}

void MemoryDriver::conclude(const Point& point, harness::Measurement& measurement) const {
  if (const auto level = guarantee_of(point, services::info_of(system_of(point, systems_)))) {
    measurement.guarantee = to_string(*level);
  }
  const std::vector<std::uint64_t> copies = std::exchange(measurement.evidence, {});
  const bool equal = std::equal(copies.begin() + !copies.empty(), copies.end(), copies.begin());
  if (!equal) {
    measurement.judge(harness::Verdict::invalid,
                      "the copies of the region differ when all has been synced");
  }
}

}  // namespace perdura::bench
