// Measures what an interval costs each node of this process: CPU time, writes to persistent memory
// and traffic, and the peak memory of the node's regions until the interval's end. The barriers
// around an interval take CPU time, too, so the cost of an empty interval before the measured one
// is subtracted; an idle server then costs nothing. On real platforms it also measures how quiet
// the host was.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/config/roles.h"
#include "harness/results/measurement.h"
#include "harness/schema/schema.h"
#include "platform/platform.h"

namespace perdura::harness {

// The columns that points.csv has for each role, in addition to those for all nodes together.
schema::Schema role_columns(const Roles& roles);

enum class Interval : std::uint8_t { empty, measured };

// Any one thread of a node may call begin() and end() for it; nodes do not disturb each other.
class IntervalCosts {
 public:
  // If `modelled`, no host noise is measured: a model has no host that could be noisy.
  IntervalCosts(NodeId nodes, bool modelled) : modelled_(modelled), nodes_(nodes) {}
  void begin(Node& node);
  void end(Node& node, Interval interval);
  // Adds the costs of each node to those of its role.
  void add_to(Measurement& measurement, const Roles& roles) const;

 private:
  // Counts of the operating system or the model on a node: absolute when the interval began, and
  // the increase by its end.
  struct NodeCosts {
    Picoseconds cpu_before{};
    pmem::Writes writes_before{};
    fabric::TrafficByNode traffic_before{};
    Picoseconds empty_cpu{};
    RoleCosts own{};  // without traffic, which also yields the peers' costs
    fabric::TrafficByNode traffic{};
    HostCounts host_before{};
    std::optional<HostNoise> noise{};
  };

  bool modelled_;
  std::vector<NodeCosts> nodes_;
};

}  // namespace perdura::harness
