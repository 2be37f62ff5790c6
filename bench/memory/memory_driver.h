// The driver `memory`: threads of an application store to replicated memory and sync what they have
// stored ("Mojim", section 3.4.2). Its systems are those of services/memory; the latency is that of
// a sync, without the stores before it.
#pragma once

#include <span>

#include "harness/run/point.h"
#include "services/memory/memory.h"

namespace perdura::bench {

class MemoryDriver final : public harness::Driver {
 public:
  // `systems`: a table that outlives this.
  explicit MemoryDriver(std::span<const services::MemorySystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "memory"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  std::vector<schema::Column> columns(std::string_view name) const override;
  std::vector<schema::Column> columns_of(const harness::Point& point) const override;
  std::span<const std::string_view> columns_if_unusual() const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
  std::optional<Bytes> memory(const harness::Point& point) const override;
  std::optional<Bytes> persistent_memory(const harness::Point& point) const override {
    return memory(point);
  }
  std::string_view takes_memory() const override { return "region_size or backups"; }
  // When all nodes have ended, their copies must be equal.
  void conclude(const harness::Point& point, harness::Measurement& measurement) const override;

 private:
  std::span<const services::MemorySystem> systems_;
};

// The configuration that the point asks for.
services::MemoryConfig memory_config(const harness::Point& point,
                                     const services::MemorySystem& system);

}  // namespace perdura::bench
