// Measures what a measured interval costs each node of this process: CPU time, writes to persistent
// memory and traffic; and how much memory the node's regions have had until its end. The barriers
// around an interval take CPU time, too, so the cost of an empty interval before the measured one
// is subtracted, and an idle server costs nothing. On real platforms it also measures how quiet the
// host was.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/config/roles.h"
#include "harness/results/measurement.h"
#include "harness/schema/schema.h"
#include "platform/platform.h"

namespace perdura::harness {

// The columns of points.csv that exist per role, in addition to those for all nodes together.
report::Schema role_columns(const Roles& roles);

enum class Interval : std::uint8_t { empty, measured };

// A node's costs may be taken by any one of its threads; nodes do not disturb each other.
class IntervalCosts {
 public:
  // A model has no host that could be noisy.
  IntervalCosts(NodeId nodes, bool modelled) : modelled_(modelled), nodes_(nodes) {}
  void begin(Node& node);
  void end(Node& node, Interval interval);
  // Adds the costs of each node to those of its role.
  void add_to(Measurement& measurement, const Roles& roles) const;

 private:
  // What the operating system or the model has counted on a node: when the interval began, and at
  // the end of an interval what was added.
  struct NodeCosts {
    Picoseconds cpu_before{};
    pmem::Writes writes_before{};
    fabric::TrafficByNode traffic_before{};
    Picoseconds empty_cpu{};
    RoleCosts own{};  // but for the traffic, of which it knows its peers', too
    fabric::TrafficByNode traffic{};
    HostCounts host_before{};
    std::optional<HostNoise> noise{};
  };

  bool modelled_;
  std::vector<NodeCosts> nodes_;
};

}  // namespace perdura::harness
