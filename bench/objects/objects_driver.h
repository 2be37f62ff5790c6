// The driver `objects`: its clients put, get and erase values in pools of the shards of a server,
// transfer them directly, or invoke active data objects. Its systems are the registry's stores of
// pools.
#pragma once

#include "harness/run/point.h"
#include "services/objects/objects.h"

namespace perdura::bench {

class ObjectsDriver final : public harness::Driver {
 public:
  // `systems` is the registry's table; tests pass their own.
  explicit ObjectsDriver(std::span<const objects::System> systems) : systems_(systems) {}

  std::string_view name() const override { return "objects"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
  std::optional<Bytes> memory(const harness::Point& point) const override;
  std::string_view takes_memory() const override {
    return "records, clients_per_shard, server_threads or value_size";
  }
  void conclude(const harness::Point& point, harness::Measurement& measurement) const override;

 private:
  std::span<const objects::System> systems_;
};

// The configuration of each shard, with room for the records of its pools and for values that are
// replaced.
objects::Config shard_config(const harness::Point& point);
// The size of each pool of a shard.
Bytes pool_size(const harness::Point& point);

}  // namespace perdura::bench
