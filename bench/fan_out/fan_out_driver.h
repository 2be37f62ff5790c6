// The driver `fan-out`: one client writes the same data to the memory of several nodes, by a WRITE
// to each, or by one WRITE that the network delivers to all of them ("Building Distributed Systems
// with Non-Volatile Main Memories and RDMA Networks", section 5.5.4). No device has the latter, so
// it is for platform `sim` only (platform/fabric/sim/multicast.h). A write lasts until all have
// acknowledged it.
#pragma once

#include "harness/run/point.h"

namespace perdura::bench {

class FanOutDriver final : public harness::Driver {
 public:
  std::string_view name() const override { return "fan-out"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  void check_platform(std::string_view platform, const std::string& where) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
};

}  // namespace perdura::bench
