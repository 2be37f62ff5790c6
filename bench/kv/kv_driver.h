// The driver `kv`: runs YCSB workloads against the key-value systems of
// systems/registry/registry.cc.
#pragma once

#include "harness/run/point.h"
#include "services/kv/kv.h"

namespace perdura::bench {

class KvDriver final : public harness::Driver {
 public:
  // `systems` is the registry's table; tests pass their own.
  explicit KvDriver(std::span<const kv::KvSystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "kv"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  std::vector<std::string> remarks(const std::vector<harness::Point>& points) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  std::vector<schema::Column> columns(std::string_view system) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
  std::optional<Bytes> memory(const harness::Point& point) const override;
  std::string_view takes_memory() const override {
    return "clients, server_threads, records or operations";
  }
  void conclude(const harness::Point& point, harness::Measurement& measurement) const override;

 private:
  std::span<const kv::KvSystem> systems_;
};

// The configuration of a store that can hold all records of a point, in all of its partitions
// together.
kv::KvConfig store_config(const harness::Point& point);
// The number of partitions of a point's store. Depending on the system, all threads of a server
// serve one partition or each thread its own, and servers have their own partitions or share them.
std::uint32_t partitions(const harness::Point& point, const kv::KvSystem& system);
// The configuration of one partition. Throws UsageError if puts cannot be made durable as the point
// asks.
kv::KvConfig partition_config(const harness::Point& point, const kv::KvSystem& system);
// The method that makes the point's puts durable before they are acknowledged. It is correct on
// every server that fits the properties that the point states. Returns nothing if puts are to
// persist as in the paper. Throws UsageError if there is no such method.
std::optional<methods::Method> put_method(const harness::Point& point, const kv::KvSystem& system);

}  // namespace perdura::bench
