// The driver `fs`: threads of an application use a file system. Its systems are those of
// services/fs, in this process, and `path`: a directory of this machine, used by system calls,
// whatever file system is mounted there. Latency is measured per operation of the workload, by
// kind.
#pragma once

#include <span>
#include <vector>

#include "harness/run/point.h"
#include "services/fs/fs.h"
#include "services/memory/memory.h"

namespace perdura::bench {

class FsDriver final : public harness::Driver {
 public:
  // The file systems of the service, to which Octopus is added, which is used by paths
  // (bench/fs/octopus_target.h), and the replicated memories that they may use. The latter table must
  // outlive this.
  FsDriver(std::span<const fs::FsSystem> systems, std::span<const services::MemorySystem> memories);

  std::string_view name() const override { return "fs"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  // Sets settings that the point leaves open to the usual values of its workload.
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  void check_platform_of(const harness::Point& point, std::string_view platform,
                         const std::string& where) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  std::vector<schema::Column> columns(std::string_view name) const override;
  std::span<const std::string_view> columns_if_unusual() const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
  std::optional<Bytes> memory(const harness::Point& point) const override;
  std::optional<Bytes> persistent_memory(const harness::Point& point) const override {
    return memory(point);
  }
  std::filesystem::path directory_of_data(const harness::Point& point) const override;
  std::string_view takes_memory() const override { return "size"; }
  void conclude(const harness::Point& point, harness::Measurement& measurement) const override;

 private:
  // Null if the file system has persistent memory of its own. Throws UsageError.
  const services::MemorySystem* replication_of(const harness::PointSettings& settings) const;

  std::span<const fs::FsSystem> all() const { return systems_; }
  // Null if the point names none of them.
  const fs::FsSystem* find(std::string_view name) const;

  std::vector<fs::FsSystem> systems_;
  std::span<const services::MemorySystem> memories_;
};

}  // namespace perdura::bench
