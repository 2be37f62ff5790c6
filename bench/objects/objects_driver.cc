#include "bench/objects/objects_driver.h"

#include <fmt/format.h>

#include "bench/client_server.h"
#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/objects/objects_parameters.h"
#include "bench/objects/objects_run.h"
#include "bench/objects/objects_workload.h"
#include "platform/base/error.h"
#include "services/kv/key_format.h"
#include "systems/parameter_reader.h"

namespace perdura::bench {

using harness::Point;

namespace {

// The space that a store may take for a record besides its key and value, and for a pool besides
// its records: granularities of allocators.
constexpr Bytes kForRecord = 512;
constexpr Bytes kForPool = 64 * MiB;

Bytes records_size(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  const std::uint64_t values =
      settings.number("records") +
      settings.number("queue_depth") * settings.number("clients_per_shard");
  return values * (2 * (settings.number("key_size") + settings.number("value_size")) + kForRecord);
}

std::uint64_t pools(const Point& point) {
  return pool_is_shared(point.settings) ? 1 : point.settings.number("clients_per_shard");
}

}  // namespace

Bytes pool_size(const Point& point) { return records_size(point) + kForPool; }

objects::Config shard_config(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  return {.memory = pools(point) * pool_size(point),
          .max_message_value = moves_directly(settings) ? 0 : settings.number("value_size"),
          .sessions = static_cast<std::uint32_t>(settings.number("clients_per_shard")),
          .parameters = point.parameters};
}

std::span<const Parameter> ObjectsDriver::parameters() const { return objects_parameters(); }

std::vector<harness::DriverDeclarations::System> ObjectsDriver::systems() const {
  return declarations_of(systems_);
}

void ObjectsDriver::prepare(Point& point, const harness::Locations&) const {
  const harness::PointSettings& settings = point.settings;
  point.operations = settings.number("records") * pools(point) * settings.number("server_threads") +
                     settings.number("operations") + settings.number("warmup");
}

void ObjectsDriver::check(const Point& point) const {
  const harness::PointSettings& settings = point.settings;
  const objects::System& system = system_of(point, systems_);
  const auto refuse = [&](std::string_view parameter, const std::string& what) {
    throw UsageError(fmt::format("{}: {}", settings.where(parameter), what));
  };
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(fmt::format("{}: pools are not recorded over time; remove [timeline]",
                                 settings.system.where));
  }
  const kv::KeyFormat keys(settings.number("key_size"), "", kv::InsertOrder::hashed);
  if (settings.number("records") > keys.capacity()) {
    refuse("records",
           fmt::format("there are only {} keys of {} bytes; raise key_size or lower records",
                       keys.capacity(), settings.number("key_size")));
  }
  const ObjectWorkload last(point, object_clients(settings) - 1);
  if (last.uses(ObjectOperation::erase)) {
    const std::uint64_t clients = object_clients(settings);
    const std::uint64_t most = (settings.number("operations") + clients - 1) / clients +
                               (settings.number("warmup") + clients - 1) / clients;
    if (most > last.own_records()) {
      refuse("workload", fmt::format("a client erases {} records, warm-up included, of {}; raise "
                                     "records or lower operations",
                                     most, last.own_records()));
    }
  }
  const bool of_part = last.uses(ObjectOperation::put_direct_offset) ||
                       last.uses(ObjectOperation::get_direct_offset);
  if (of_part && settings.number("part_size") > settings.number("value_size")) {
    refuse("part_size",
           fmt::format("a part of {} bytes is longer than the value; lower part_size or "
                       "raise value_size",
                       settings.number("part_size")));
  }
  check_server(point, system.info);
  try {
    system.check(shard_config(point));
  } catch (const systems::ParameterError& error) {
    throw UsageError(fmt::format("{}: {}", point.place_of(error.parameter), error.what()));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", settings.system.where, error.what()));
  }
}

harness::Roles ObjectsDriver::roles(const harness::PointSettings& settings, NodeId nodes) const {
  return client_server(settings, nodes);
}

harness::Measurement ObjectsDriver::run(Platform& platform, const Point& point) const {
  return ObjectsRun(platform, point, system_of(point, systems_)).execute();
}

// Memory that is not used takes none.
std::optional<Bytes> ObjectsDriver::memory(const Point& point) const {
  const harness::PointSettings& settings = point.settings;
  const Bytes of_client = 4 * settings.number("queue_depth") * settings.number("value_size");
  return settings.number("server_threads") * pools(point) * records_size(point) +
         object_clients(settings) * of_client;
}

void ObjectsDriver::conclude(const Point& point, harness::Measurement& measurement) const {
  if (const auto level = guarantee_of(point, system_of(point, systems_).info)) {
    measurement.guarantee = to_string(*level);
  }
}

}  // namespace perdura::bench
