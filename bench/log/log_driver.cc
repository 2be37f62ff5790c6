#include "bench/log/log_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/log/log_run.h"
#include "harness/config/section.h"
#include "platform/error.h"

namespace perdura::bench {

using harness::Point;
using workload::OperationKind;

namespace {

struct LogParameter {
  std::string_view name;
  std::uint64_t value;  // where nothing is said
  std::uint64_t least;
  std::uint64_t most;
};
constexpr std::array<LogParameter, 5> kLogParameters{{
    {"read_for_flush", 0, 0, 1},
    {"receive_buffers", 64, 1, 1 << 16},
    {"receive_buffers_in_pm", 0, 0, 1},
    {"slots", 4096, 1, std::uint64_t{1} << 30},
    {"collect_us", 20, 1, 1'000'000},
}};

std::uint64_t parameter(const Point& point, std::string_view name) {
  const auto* const known =
      std::find_if(kLogParameters.begin(), kLogParameters.end(),
                   [&](const LogParameter& candidate) { return candidate.name == name; });
  const auto given = point.parameters.find(name);
  return given == point.parameters.end() ? known->value : given->second;
}

void check_parameters(const Point& point) {
  for (const auto& [name, value] : point.parameters) {
    const auto* const known =
        std::find_if(kLogParameters.begin(), kLogParameters.end(),
                     [&](const LogParameter& candidate) { return candidate.name == name; });
    if (known == kLogParameters.end()) {
      std::vector<std::string_view> names;
      for (const LogParameter& candidate : kLogParameters) names.push_back(candidate.name);
      throw UsageError(fmt::format("{}: a method has no parameter '{}'; known are: {}",
                                   point.settings.system.where, name, harness::join_names(names)));
    }
    if (value < known->least || value > known->most) {
      throw UsageError(fmt::format("{}: {} of {} must be {} to {}, not {}",
                                   point.settings.system.where, name, point.system_name,
                                   known->least, known->most, value));
    }
  }
}

}  // namespace

LogOptions log_options(const Point& point) {
  check_parameters(point);
  LogOptions options;
  options.method = persistence::find_method(point.settings.system.text);
  if (parameter(point, "read_for_flush") != 0) {
    options.method = persistence::with_read_for_flush(options.method);
  }
  options.slots = parameter(point, "slots");
  options.largest_record = point.workload.max_value_size();
  options.receive_buffers = static_cast<std::uint32_t>(parameter(point, "receive_buffers"));
  options.receive_medium =
      parameter(point, "receive_buffers_in_pm") != 0 ? pmem::Medium::pm : pmem::Medium::dram;
  return options;
}

Picoseconds collect_interval(const Point& point) {
  return Microseconds(parameter(point, "collect_us"));
}

void LogDriver::check(const Point& point) const {
  const auto refuse = [&](std::string_view what) {
    throw UsageError(fmt::format("{}: {}", point.settings.workload.where, what));
  };
  const harness::PointSettings& settings = point.settings;
  if (point.workload.share(OperationKind::insert) != 1.0 || point.workload.loaded_keys() != 0) {
    refuse("a log takes appends only; use workload = \"create-only\" with records = 0");
  }
  if (settings.clients != 1 || settings.queue_depth != 1 || settings.server_threads != 1 ||
      point.client_nodes != 1) {
    refuse(
        "a log has one client with one append under way, and one server thread; set clients, "
        "client_nodes, queue_depth and server_threads to 1");
  }
  if (settings.check_history) refuse("a log keeps no history to be checked; remove check_history");
  if (point.timeline_interval > Nanoseconds{}) {
    refuse("a log is not recorded over time; remove [timeline]");
  }
  log_options(point);
}

std::vector<std::string_view> LogDriver::systems() const {
  std::vector<std::string_view> names;
  for (const persistence::Method& method : persistence::methods()) names.push_back(method.name);
  return names;
}

harness::Measurement LogDriver::run(Platform& platform, const Point& point) const {
  return LogRun(platform, point).execute();
}

}  // namespace perdura::bench
