#include "bench/log/remote_log_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/client_server.h"
#include "bench/driver/server.h"
#include "bench/log/log_run.h"
#include "bench/log/remote_log_parameters.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "bench/ycsb/workload_remarks.h"
#include "methods/proof.h"
#include "platform/base/error.h"
#include "systems/remote_log/system.h"

namespace perdura::bench {

using harness::Point;
using methods::Carrier;
using methods::Update;
using ycsb::OperationKind;

namespace {

// The parameters of the point's method, given in [systems.METHOD].
ParameterValues values_of_method(const Point& point) {
  ParameterValues values(method_parameters());
  for (const auto& [name, value] : point.parameters) values.set(name, value);
  return values;
}

// The systems that stand for the paper's choice of method, with the operation that carries the
// update.
constexpr std::array<std::pair<std::string_view, Carrier>, 3> kOfPaper{{
    {"paper-write", Carrier::write},
    {"paper-write-imm", Carrier::write_immediate},
    {"paper-send", Carrier::send},
}};

methods::Method method_of_paper(const Point& point, Carrier carrier) {
  const harness::PointSettings& settings = point.settings;
  std::vector<std::string_view> missing;
  for (const std::string_view name : {"domain", "ddio", "receive_buffers", "transport", "update"}) {
    if (!settings.given(name)) missing.push_back(name);
  }
  if (!missing.empty()) {
    throw UsageError(fmt::format(
        "{}: the method of {} depends on the server's configuration; add {} to [workload] or "
        "[matrix]",
        settings.system.where, settings.system.text, fmt::join(missing, ", ")));
  }
  return methods::method_of_paper(
      methods::configurations(stated_server(settings)).front(),
      settings.text("update") == "ordered" ? Update::ordered : Update::single, carrier);
}

methods::Method method_of(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  for (const auto& [name, carrier] : kOfPaper) {
    if (settings.system.text == name) return method_of_paper(point, carrier);
  }
  methods::Method method = methods::find_method(settings.system.text);
  const std::string update = settings.text("update");
  if (!update.empty() && update != to_string(method.update)) {
    throw UsageError(fmt::format("{}: method '{}' is for {} updates; remove update = \"{}\"",
                                 settings.system.where, method.name, to_string(method.update),
                                 update));
  }
  return method;
}

pmem::Medium receive_medium(const Point& point, const ParameterValues& method) {
  const bool given = method.given("receive_buffers_in_pm");
  const bool in_pm = given && method.flag("receive_buffers_in_pm");
  const std::string stated = point.settings.text("receive_buffers");
  if (!stated.empty() && given && in_pm != (stated == "pm")) {
    throw UsageError(
        fmt::format("{}: receive_buffers_in_pm = {} of {} contradicts receive_buffers = \"{}\"; "
                    "keep one",
                    point.settings.system.where, in_pm ? 1 : 0, point.system_name, stated));
  }
  return in_pm || stated == "pm" ? pmem::Medium::pm : pmem::Medium::dram;
}

}  // namespace

systems::remote_log::LogOptions log_options(const Point& point) {
  const ParameterValues method = values_of_method(point);
  systems::remote_log::LogOptions options;
  options.method = method_of(point);
  options.read_for_flush = method.flag("read_for_flush");
  // The result is about the method with FLUSH, as in the paper, and so is its guarantee.
  options.timed_as_flush = true;
  options.slots = method.number("slots");
  options.largest_record = workload_of(point).max_value_size();
  options.receive_buffers = static_cast<std::uint32_t>(method.number("receive_buffers"));
  options.receive_medium = receive_medium(point, method);
  return options;
}

std::optional<services::GuaranteeLevel> guarantee_of(const Point& point) {
  const methods::StatedConfiguration stated = stated_server(point.settings);
  if (stated.domain.empty() && stated.ddio.empty() && stated.receive_buffers.empty() &&
      stated.transport.empty()) {
    return std::nullopt;
  }
  const methods::Method method = log_options(point).method;
  const auto open = methods::configurations(stated);
  const bool right =
      std::all_of(open.begin(), open.end(), [&](const methods::Configuration& configuration) {
        return prove(method, configuration, {.to_the_end = false}).correctness ==
               methods::Correctness::right;
      });
  return right ? services::GuaranteeLevel::durable : services::GuaranteeLevel::visible;
}

Picoseconds collect_interval(const Point& point) {
  return Microseconds(values_of_method(point).number("collect_us"));
}

std::span<const Parameter> RemoteLogDriver::parameters() const { return remote_log_parameters(); }

void RemoteLogDriver::prepare(Point& point, const harness::Locations& locations) const {
  prepare_workload(point, locations);
}

void RemoteLogDriver::check(const Point& point) const {
  const auto refuse = [&](std::string_view what) {
    throw UsageError(fmt::format("{}: {}", point.settings.where("workload"), what));
  };
  const ycsb::WorkloadSpec& spec = workload_of(point);
  if (spec.share(OperationKind::insert) != 1.0 || spec.loaded_keys() != 0) {
    refuse("a log takes appends only; use workload = \"create-only\" with records = 0");
  }
  if (point.timeline_interval > Nanoseconds{}) {
    refuse("a log is not recorded over time; remove [timeline]");
  }
  log_options(point);
}

std::vector<std::string> RemoteLogDriver::remarks(const std::vector<Point>& points) const {
  return remarks_on_workloads(points);
}

std::vector<harness::DriverDeclarations::System> RemoteLogDriver::systems() const {
  std::vector<harness::DriverDeclarations::System> declared;
  for (const methods::Method& method : methods::methods()) {
    declared.push_back({method.name, method_parameters()});
  }
  for (const auto& [name, carrier] : kOfPaper) declared.push_back({name, method_parameters()});
  return declared;
}

harness::Roles RemoteLogDriver::roles(const harness::PointSettings&, NodeId) const {
  return client_server(1);
}

namespace {

class RemoteLogTarget final : public LogTarget {
 public:
  explicit RemoteLogTarget(const Point& point)
      : options_(log_options(point)), collect_(collect_interval(point)) {}

  std::string method_name(const fabric::Capabilities& device) const override {
    return options_.on(device).method_name();
  }
  std::unique_ptr<services::LogStore> open(Thread& thread,
                                           services::ApplyRecord apply) const override {
    return systems::remote_log::open_store(thread, "log", on(thread), collect_, std::move(apply));
  }
  Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread,
                                                     fabric::Address server) const override {
    return systems::remote_log::connect_writer(thread, server, on(thread));
  }

 private:
  systems::remote_log::LogOptions on(Thread& thread) const {
    return options_.on(thread.endpoint.capabilities());
  }

  const systems::remote_log::LogOptions options_;
  const Picoseconds collect_;
};

}  // namespace

harness::Measurement RemoteLogDriver::run(Platform& platform, const Point& point) const {
  const RemoteLogTarget target(point);
  const LogLoad load{.operations = workload_of(point).operation_count,
                     .warmup = point.settings.number("warmup"),
                     .record_size = log_options(point).largest_record,
                     .kind = kind_of(OperationKind::insert)};
  return LogRun(platform, point, load, target).execute();
}

void RemoteLogDriver::conclude(const Point& point, harness::Measurement& measurement) const {
  if (const auto level = guarantee_of(point)) measurement.guarantee = to_string(*level);
}

}  // namespace perdura::bench
