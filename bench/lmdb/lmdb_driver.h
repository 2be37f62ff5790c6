// The driver `lmdb`: YCSB on LMDB, an application that knows nothing of replication. Its file is
// replicated by a mode of Mojim, or is kept in memory only, or in a directory of this machine. It stands for the MongoDB of "Mojim",
// section 3.4.3: a database that maps its file and calls msync.
//
// A point starts `perdura mojim run` with the program perdura-lmdb, on this host and in real time.
// Its systems are those of services/memory, and LMDB without replication.
#pragma once

#include <filesystem>
#include <span>

#include "harness/run/point.h"
#include "services/memory/memory.h"

namespace perdura::bench {

class LmdbDriver final : public harness::Driver {
 public:
  // The table `systems` must outlive this.
  explicit LmdbDriver(std::span<const services::MemorySystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "lmdb"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  void check_platform(std::string_view platform, const std::string& where) const override;
  std::vector<std::string> remarks(const std::vector<harness::Point>& points) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  std::vector<schema::Column> columns(std::string_view name) const override;
  std::span<const std::string_view> columns_if_unusual() const override;
  std::filesystem::path directory_of_data(const harness::Point& point) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
  void conclude(const harness::Point& point, harness::Measurement& measurement) const override;

 private:
  std::span<const services::MemorySystem> systems_;
};

}  // namespace perdura::bench
