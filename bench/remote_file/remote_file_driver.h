// The driver `remote-file`: one client writes to random places of a file in the memory of another
// node, as in Figure 5.7 of "Building Distributed Systems with Non-Volatile Main Memories and RDMA
// Networks". Its systems are the emulations of that figure (emulations.h), and the real ones that
// the program has: novad, which is FileMR's case study, Orion, and Mojim.
#pragma once

#include "harness/run/point.h"
#include "services/fs/fs.h"
#include "services/memory/memory.h"

namespace perdura::bench {

class RemoteFileDriver final : public harness::Driver {
 public:
  std::string_view name() const override { return "remote-file"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  void check_platform_of(const harness::Point& point, std::string_view platform,
                         const std::string& where) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  std::vector<schema::Column> columns(std::string_view name) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
};

}  // namespace perdura::bench
