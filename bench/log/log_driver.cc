#include "bench/log/log_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/client_server.h"
#include "bench/log/log_run.h"
#include "harness/config/section.h"
#include "persistence/proof.h"
#include "platform/base/error.h"

namespace perdura::bench {

using harness::Point;
using persistence::Carrier;
using persistence::Update;
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
                                   point.place_of(name), name, harness::join_names(names)));
    }
    if (value < known->least || value > known->most) {
      throw UsageError(fmt::format("{}: {} of {} must be {} to {}, not {}", point.place_of(name),
                                   name, point.system_name, known->least, known->most, value));
    }
  }
}

// The systems that stand for the paper's choice: what carries the update.
constexpr std::array<std::pair<std::string_view, Carrier>, 3> kOfPaper{{
    {"paper-write", Carrier::write},
    {"paper-write-imm", Carrier::write_immediate},
    {"paper-send", Carrier::send},
}};

persistence::Method method_of_paper(const Point& point, Carrier carrier) {
  const harness::PointSettings& settings = point.settings;
  std::vector<std::string_view> missing;
  for (const auto& [name, text] :
       {std::pair<std::string_view, const std::string*>{"domain", &settings.domain},
        {"ddio", &settings.ddio},
        {"receive_buffers", &settings.receive_buffers},
        {"transport", &settings.transport},
        {"update", &settings.update}}) {
    if (text->empty()) missing.push_back(name);
  }
  if (!missing.empty()) {
    throw UsageError(fmt::format(
        "{}: the method of {} depends on the server's configuration; add {} to [workload] or "
        "[matrix]",
        settings.system.where, settings.system.text, harness::join_names(missing)));
  }
  const auto configuration =
      persistence::configurations(
          {settings.domain, settings.ddio, settings.receive_buffers, settings.transport})
          .front();
  return persistence::method_of_paper(
      configuration, settings.update == "ordered" ? Update::ordered : Update::single, carrier);
}

persistence::Method method_of(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  for (const auto& [name, carrier] : kOfPaper) {
    if (settings.system.text == name) return method_of_paper(point, carrier);
  }
  persistence::Method method = persistence::find_method(settings.system.text);
  if (!settings.update.empty() && settings.update != to_string(method.update)) {
    throw UsageError(fmt::format("{}: method '{}' is for {} updates; remove update = \"{}\"",
                                 settings.system.where, method.name, to_string(method.update),
                                 settings.update));
  }
  return method;
}

pmem::Medium receive_medium(const Point& point) {
  const bool in_pm = parameter(point, "receive_buffers_in_pm") != 0;
  const std::string& stated = point.settings.receive_buffers;
  if (!stated.empty() && point.parameters.contains("receive_buffers_in_pm") &&
      in_pm != (stated == "pm")) {
    throw UsageError(
        fmt::format("{}: receive_buffers_in_pm = {} of {} contradicts receive_buffers = \"{}\"; "
                    "keep one",
                    point.settings.system.where, in_pm ? 1 : 0, point.system_name, stated));
  }
  return in_pm || stated == "pm" ? pmem::Medium::pm : pmem::Medium::dram;
}

}  // namespace

LogOptions log_options(const Point& point) {
  check_parameters(point);
  LogOptions options;
  options.method = method_of(point);
  options.read_for_flush = parameter(point, "read_for_flush") != 0;
  options.slots = parameter(point, "slots");
  options.largest_record = point.workload.max_value_size();
  options.receive_buffers = static_cast<std::uint32_t>(parameter(point, "receive_buffers"));
  options.receive_medium = receive_medium(point);
  return options;
}

std::optional<services::GuaranteeLevel> guarantee_of(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  const persistence::StatedConfiguration stated{settings.domain, settings.ddio,
                                                settings.receive_buffers, settings.transport};
  if (stated.domain.empty() && stated.ddio.empty() && stated.receive_buffers.empty() &&
      stated.transport.empty()) {
    return std::nullopt;
  }
  const persistence::Method method = log_options(point).method;
  const auto open = persistence::configurations(stated);
  const bool right =
      std::all_of(open.begin(), open.end(), [&](const persistence::Configuration& configuration) {
        return prove(method, configuration, {.to_the_end = false}).correctness ==
               persistence::Correctness::right;
      });
  return right ? services::GuaranteeLevel::durable : services::GuaranteeLevel::visible;
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
      point.roles.nodes_of("client") != 1) {
    refuse(
        "a log has one client with one append under way, and one server thread; set clients, "
        "client_nodes, queue_depth and server_threads to 1");
  }
  if (!settings.persistence.empty()) {
    refuse("a log's systems are methods of persistence; remove persistence");
  }
  if (settings.load != "closed" || settings.duration_ms || settings.ramp_ms ||
      settings.steady_slope || settings.until_full) {
    refuse(
        "a log's client appends a number of records in a closed loop; remove load, duration_ms, "
        "until_full, ramp_ms and steady_slope");
  }
  if (settings.resizes) refuse("a log is a ring of a fixed size; remove resizes");
  if (settings.check_history) refuse("a log keeps no history to be checked; remove check_history");
  if (point.timeline_interval > Nanoseconds{}) {
    refuse("a log is not recorded over time; remove [timeline]");
  }
  log_options(point);
}

std::vector<std::string_view> LogDriver::systems() const {
  std::vector<std::string_view> names;
  for (const persistence::Method& method : persistence::methods()) names.push_back(method.name);
  for (const auto& [name, carrier] : kOfPaper) names.push_back(name);
  return names;
}

harness::Roles LogDriver::roles(const harness::PointSettings& settings, NodeId nodes) const {
  return client_server(settings, nodes);
}

harness::Measurement LogDriver::run(Platform& platform, const Point& point) const {
  return LogRun(platform, point).execute();
}

void LogDriver::conclude(const Point& point, harness::Measurement& measurement) const {
  if (const auto level = guarantee_of(point)) measurement.guarantee = to_string(*level);
}

}  // namespace perdura::bench
