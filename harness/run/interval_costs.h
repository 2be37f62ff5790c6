// What a measured interval costs each node that lives here: CPU time and writes to persistent
// memory. The barriers around an interval take CPU time, too; what an empty interval takes before
// the measured one is subtracted, so that a server that does nothing costs nothing. On real
// platforms also how quiet the host was meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/config/roles.h"
#include "harness/results/measurement.h"
#include "harness/schema/schema.h"
#include "platform/platform.h"

namespace perdura::harness {

// What is said of each role beside what is said of all nodes together: columns of points.csv.
report::Schema role_columns(const Roles& roles);

enum class Interval : std::uint8_t { empty, measured };

// A node's costs may be taken by any one of its threads; nodes do not disturb each other.
class IntervalCosts {
 public:
  // A model has no host that could be noisy.
  IntervalCosts(NodeId nodes, bool modelled) : modelled_(modelled), nodes_(nodes) {}
  void begin(Node& node);
  void end(Node& node, Interval interval);
  // Each node's to its role.
  void add_to(Measurement& measurement, const Roles& roles) const;

 private:
  // What the operating system or the model has counted on a node: when the interval began, and at
  // the end of an interval what was added.
  struct NodeCosts {
    Picoseconds cpu_before{};
    pmem::Writes writes_before{};
    Picoseconds empty_cpu{};
    Picoseconds cpu{};
    pmem::Writes writes{};
    HostCounts host_before{};
    std::optional<HostNoise> noise{};
  };

  bool modelled_;
  std::vector<NodeCosts> nodes_;
};

}  // namespace perdura::harness
