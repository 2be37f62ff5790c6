#include "bench/kv/kv_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/client_server.h"
#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/kv/kv_history.h"
#include "bench/kv/kv_parameters.h"
#include "bench/kv/kv_run.h"
#include "bench/ycsb/point_workload.h"
#include "bench/ycsb/workload_remarks.h"
#include "platform/base/error.h"
#include "services/kv/partitioned.h"
#include "services/kv/service.h"
#include "systems/parameter_reader.h"

namespace perdura::bench {

using harness::Point;
using ycsb::OperationKind;

kv::KvConfig store_config(const Point& point) {
  const ycsb::WorkloadSpec& spec = workload_of(point);
  const std::uint64_t operations = spec.operation_count + point.settings.number("warmup");
  const auto expected = [&](double share) {
    if (share <= 0) return std::uint64_t{0};
    // The operations that a client draws are random: allow for six standard deviations above the
    // mean.
    const double mean = share * static_cast<double>(operations);
    return std::min(operations, static_cast<std::uint64_t>(mean + 6.0 * std::sqrt(mean)) + 1);
  };
  const double writing = spec.share(OperationKind::update) + spec.share(OperationKind::insert) +
                         spec.share(OperationKind::erase) +
                         spec.share(OperationKind::read_modify_write);
  kv::KvConfig config;
  config.key_size = spec.key_size;
  config.value_size = spec.max_value_size();
  config.max_value_size = spec.max_value_size();
  config.records = spec.loaded_keys() + expected(spec.share(OperationKind::insert));
  config.writes = spec.loaded_keys() + expected(writing);
  config.sessions = static_cast<std::uint32_t>(point.settings.number("clients"));
  config.parameters = point.parameters;
  if (const auto resizes = point.settings.number_if_given("resizes")) {
    config.parameters["resizes"] = *resizes;
  }
  return config;
}

std::uint32_t partitions(const Point& point, const kv::KvSystem& system) {
  const auto threads = static_cast<std::uint32_t>(point.settings.number("server_threads"));
  const std::uint32_t of_server = system.shares_partition ? 1 : threads;
  return of_server * (system.spans_servers ? 1 : point.roles.nodes_of("server"));
}

kv::KvConfig partition_config(const Point& point, const kv::KvSystem& system) {
  const std::uint32_t count = partitions(point, system);
  kv::KvConfig config = kv::partition_config(store_config(point), count);
  if (system.shares_partition) {
    config.workers = static_cast<std::uint32_t>(point.settings.number("server_threads"));
  }
  if (system.spans_servers) config.servers = point.roles.nodes_of("server");
  config.put_method = put_method(point, system);
  return config;
}

namespace {

void check_persistence(const Point& point, const kv::KvSystem& system) {
  const harness::PointSettings& settings = point.settings;
  check_server(point, services::info_of(system));
  try {
    put_method(point, system);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}: {}", settings.system.where, system.name, error.what()));
  }
}

// An open loop needs an offered load; in a closed loop the system determines the load, so giving
// one is an error.
void check_load(const harness::PointSettings& settings) {
  const bool open = settings.text("load") != "closed";
  if (open && !settings.given("offered_load")) {
    throw UsageError(fmt::format(
        "{}: load needs offered_load = ..., operations per second of all clients together",
        settings.where("load")));
  }
  if (!open && settings.given("offered_load")) {
    throw UsageError(fmt::format(
        "{}: offered_load is for an open loop, and a closed loop offers what the system takes; set "
        "load to \"poisson\" or \"fixed\", or remove it",
        settings.where("offered_load")));
  }
}

void check_parameters(const Point& point, const kv::KvSystem& system) {
  if (point.settings.given("resizes") && point.parameters.contains("resizes")) {
    throw UsageError(
        fmt::format("{}: resizes is given to {} and to all systems; remove one of them",
                    point.settings.system.where, system.name));
  }
  try {
    system.check(partition_config(point, system));
  } catch (const systems::ParameterError& error) {
    throw UsageError(fmt::format("{}: {}", point.place_of(error.parameter), error.what()));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", point.settings.system.where, error.what()));
  }
}

}  // namespace

std::optional<methods::Method> put_method(const Point& point, const kv::KvSystem& system) {
  const harness::PointSettings& settings = point.settings;
  if (settings.text("persistence") != "correct") return std::nullopt;
  return methods::choose(methods::configurations(stated_server(settings)), *system.put, {});
}

std::span<const Parameter> KvDriver::parameters() const { return kv_parameters(); }

std::vector<harness::DriverDeclarations::System> KvDriver::systems() const {
  return declarations_of(systems_);
}

void KvDriver::prepare(Point& point, const harness::Locations& locations) const {
  prepare_workload(point, locations);
}

std::vector<std::string> KvDriver::remarks(const std::vector<Point>& points) const {
  return remarks_on_workloads(points);
}

void KvDriver::check(const Point& point) const {
  const kv::KvSystem& system = system_of(point, systems_);
  const ycsb::WorkloadSpec& spec = workload_of(point);
  if (spec.uses(OperationKind::scan)) {
    throw UsageError(
        fmt::format("{}: workload {} scans, and only driver lmdb does; leave it out, or set its "
                    "scanproportion to 0",
                    point.settings.where("workload"), workload_name(point)));
  }
  const std::uint64_t operations = spec.operation_count + point.settings.number("warmup");
  if (spec.share(OperationKind::erase) == 1.0 && operations > spec.loaded_keys()) {
    throw UsageError(fmt::format(
        "{}: {} deletes {} records, warm-up included, of {}; raise records or lower operations",
        point.settings.where("workload"), workload_name(point), operations, spec.loaded_keys()));
  }
  check_load(point.settings);
  check_persistence(point, system);
  check_parameters(point, system);
  if (point.settings.flag("check_history")) check_values_tell_versions(point);
}

harness::Roles KvDriver::roles(const harness::PointSettings& settings, NodeId nodes) const {
  return client_server(settings, nodes, static_cast<NodeId>(settings.number("servers")));
}

std::vector<schema::Column> KvDriver::columns(std::string_view name) const {
  std::vector<schema::Column> columns{
      {.name = "retries_per_op",
       .shown = {"requests and reads repeated", "Requests and READs repeated per operation", ""},
       .better = schema::Column::Better::less}};
  for (const kv::KvSystem& system : systems_) {
    if (system.name != name) continue;
    add_columns(system.session_metrics, columns);
    add_columns(system.partition_metrics, columns);
  }
  return columns;
}

harness::Measurement KvDriver::run(Platform& platform, const Point& point) const {
  return KvRun(platform, point, system_of(point, systems_)).execute();
}

void KvDriver::conclude(const Point& point, harness::Measurement& measurement) const {
  const services::SystemInfo system = services::info_of(system_of(point, systems_));
  if (const auto level = guarantee_of(point, system)) {
    measurement.guarantee = to_string(*level);
  }
  if (point.settings.flag("check_history")) check_history(point, measurement);
}

}  // namespace perdura::bench
