#include "bench/log/log_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/client_server.h"
#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/log/libpmemlog_target.h"
#include "bench/log/local_log_target.h"
#include "bench/log/log_parameters.h"
#include "bench/log/log_run.h"
#include "methods/chooser.h"
#include "platform/base/error.h"
#include "systems/parameter_reader.h"

namespace perdura::bench {

using harness::Point;
using services::LogConfig;
using services::LogSystem;

namespace {

class ServedLogTarget final : public LogTarget {
 public:
  ServedLogTarget(const LogSystem& system, LogConfig config, bool is_chosen)
      : system_(system), config_(std::move(config)), is_chosen_(is_chosen) {}

  std::string method_name(const fabric::Capabilities&) const override {
    return is_chosen_ ? config_.method.name : "";
  }
  std::unique_ptr<services::LogStore> open(Thread& thread,
                                           services::ApplyRecord apply) const override {
    return system_.open(thread, "log", config_, std::move(apply));
  }
  Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread,
                                                     fabric::Address server) const override {
    return system_.connect(thread, server, config_);
  }

 private:
  const LogSystem& system_;
  const LogConfig config_;
  const bool is_chosen_;
};

// The logs without a server.
constexpr std::array kKeptByClient{&kLocalLog, &kLibpmemlog};

bool is_libpmemlog(const Point& point) { return point.settings.system.text == kLibpmemlog.name; }

std::unique_ptr<LogTarget> target_at_client(const Point& point, const LogConfig& config) {
  if (!is_libpmemlog(point)) return local_log_target(config);
  const systems::ParameterReader given(kLibpmemlog.name, kLibpmemlog.parameters, point.parameters);
  return libpmemlog_target(config, given.text("path"));
}

bool is_correct(const Point& point) { return point.settings.text("persistence") == "correct"; }

// The method of the system's paper, which may depend on what the point leaves open.
methods::Method published_method(const Point& point, const LogSystem& system) {
  const methods::StatedConfiguration known = known_server(point);
  std::vector<methods::Method> all;
  for (const methods::Configuration& each : methods::configurations(known)) {
    all.push_back(system.published(each.model, point.parameters));
    if (all.back().name == all.front().name) continue;
    std::vector<std::string_view> open;
    if (known.domain.empty()) open.push_back("domain");
    if (known.ddio.empty()) open.push_back("ddio");
    if (known.transport.empty()) open.push_back("transport");
    throw UsageError(fmt::format(
        "{}: the method of {} depends on the server; add persistence = \"paper\" and {} "
        "to [workload] or [matrix]",
        point.settings.system.where, system.info.name, fmt::join(open, ", ")));
  }
  return all.front();
}

}  // namespace

const LogSystem* LogDriver::system_of_server(const Point& point) const {
  const auto found = std::find_if(systems_.begin(), systems_.end(), [&](const LogSystem& each) {
    return each.info.name == point.settings.system.text;
  });
  if (found != systems_.end()) return &*found;
  std::vector<std::string_view> known;
  for (const LogSystem& each : systems_) known.push_back(each.info.name);
  for (const services::SystemInfo* local : kKeptByClient) {
    if (local->name == point.settings.system.text) return nullptr;
    known.push_back(local->name);
  }
  throw UsageError(no_such_system(point, known));
}

services::SystemInfo LogDriver::info_of(const Point& point) const {
  const LogSystem* system = system_of_server(point);
  if (system != nullptr) return services::info_of(*system);
  return is_libpmemlog(point) ? kLibpmemlog : kLocalLog;
}

LogConfig LogDriver::config_of(const Point& point) const {
  LogConfig config{
      .records = point.settings.number("capacity"),
      .largest_record = static_cast<std::uint32_t>(point.settings.number("value_size")),
      .parameters = point.parameters};
  const LogSystem* system = system_of_server(point);
  if (system == nullptr) return config;
  config.method = is_correct(point)
                      ? methods::choose(methods::configurations(stated_server(point.settings)),
                                        *system->append, {})
                      : published_method(point, *system);
  return config;
}

std::span<const Parameter> LogDriver::parameters() const { return log_parameters(); }

std::vector<harness::DriverDeclarations::System> LogDriver::systems() const {
  auto declared = declarations_of(systems_);
  for (const services::SystemInfo* local : kKeptByClient) {
    declared.push_back({local->name, local->parameters, local->title});
  }
  return declared;
}

void LogDriver::prepare(Point& point, const harness::Locations&) const {
  point.operations = point.settings.number("operations") + point.settings.number("warmup");
}

void LogDriver::check(const Point& point) const {
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(fmt::format("{}: a log is not recorded over time; remove [timeline]",
                                 point.settings.system.where));
  }
  check_server(point, info_of(point));
  try {
    config_of(point);
  } catch (const systems::ParameterError& error) {
    throw UsageError(fmt::format("{}: {}", point.place_of(error.parameter), error.what()));
  }
}

void LogDriver::check_platform_of(const Point& point, std::string_view platform,
                                  const std::string& where) const {
  if (!is_libpmemlog(point)) return;
  if (platform == "sim") {
    throw UsageError(fmt::format(
        "{}: the system libpmemlog takes real time; set platform to \"shm\", or measure "
        "local-log",
        where));
  }
  if (!have_libpmemlog()) {
    throw UsageError(
        fmt::format("{}: this perdura was built without libpmemlog; install libpmemlog-dev and "
                    "build it again",
                    point.settings.system.where));
  }
}

harness::Roles LogDriver::roles(const harness::PointSettings&, NodeId) const {
  return client_server(1);
}

harness::Measurement LogDriver::run(Platform& platform, const Point& point) const {
  const LogSystem* system = system_of_server(point);
  const LogConfig config = config_of(point);
  const std::unique_ptr<LogTarget> target =
      system == nullptr ? target_at_client(point, config)
                        : std::make_unique<ServedLogTarget>(*system, config, is_correct(point));
  const LogLoad load{.operations = point.settings.number("operations"),
                     .warmup = point.settings.number("warmup"),
                     .record_size = config.largest_record,
                     .kind = {0, "append"}};
  return LogRun(platform, point, load, *target).execute();
}

void LogDriver::conclude(const Point& point, harness::Measurement& measurement) const {
  if (const auto level = guarantee_of(point, info_of(point))) {
    measurement.guarantee = to_string(*level);
  }
}

}  // namespace perdura::bench
