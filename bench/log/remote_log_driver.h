// The driver `remote-log`: one client appends to a log in the memory of a server (section 4.1 of
// "Correct, Fast Remote Persistence"). Its systems are the methods of remote persistence
// (methods/taxonomy.methods), and paper-write, paper-write-imm and paper-send: the
// method that the paper uses for the point's configuration and update (Tables 2 and 3). The values
// of the workload are the records.
#pragma once

#include <optional>

#include "harness/run/point.h"
#include "services/guarantee.h"
#include "systems/remote_log/log_format.h"

namespace perdura::bench {

class RemoteLogDriver final : public harness::Driver {
 public:
  std::string_view name() const override { return "remote-log"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  std::vector<std::string> remarks(const std::vector<harness::Point>& points) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
  void conclude(const harness::Point& point, harness::Measurement& measurement) const override;
};

// The options of the log that a point's method, workload and [systems.METHOD] (log_parameters.cc)
// ask for. Throws UsageError if they contradict each other.
systems::remote_log::LogOptions log_options(const harness::Point& point);
// `durable` if the method is correct on every configuration that the point leaves open; else
// `visible`, since a method that is wrong on any of them promises nothing. Returns nothing if the
// point does not describe its server.
std::optional<services::GuaranteeLevel> guarantee_of(const harness::Point& point);
Picoseconds collect_interval(const harness::Point& point);

}  // namespace perdura::bench
