// The driver `connections`: every server of a cluster connects to every other, and the queue pairs
// that each device then has to keep are counted ("Building Distributed Systems with Non-Volatile
// Main Memories and RDMA Networks", section 5.5.2). Its systems are the ways of connecting: each
// process with each process of the other servers, since a connection protects the memory of one
// process; or each server with each other one, which is enough if the file system checks
// permissions when a file is bound, as FileMR does. No time is measured, so it is for platform
// `sim` only.
#pragma once

#include "harness/run/point.h"

namespace perdura::bench {

class ConnectionsDriver final : public harness::Driver {
 public:
  std::string_view name() const override { return "connections"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void check(const harness::Point& point) const override;
  void check_platform(std::string_view platform, const std::string& where) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  std::vector<schema::Column> columns(std::string_view name) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
};

}  // namespace perdura::bench
