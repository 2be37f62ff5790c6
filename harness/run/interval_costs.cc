#include "harness/run/interval_costs.h"

#include <algorithm>

namespace perdura::harness {

void IntervalCosts::begin(Node& node) {
  NodeCosts& costs = nodes_[node.id()];
  if (!modelled_) costs.host_before = host_counts();
  costs.writes_before = node.pm_writes();
  costs.cpu_before = node.cpu_time();
}

void IntervalCosts::end(Node& node, Interval interval) {
  NodeCosts& costs = nodes_[node.id()];
  const Picoseconds cpu = node.cpu_time() - costs.cpu_before;
  if (interval == Interval::empty) {
    costs.empty_cpu = cpu;
    return;
  }
  costs.cpu = std::max(cpu - costs.empty_cpu, Picoseconds{});
  costs.writes = node.pm_writes();
  costs.writes -= costs.writes_before;
  if (!modelled_) costs.noise = noise_between(costs.host_before, host_counts());
}

void IntervalCosts::add_to(Measurement& measurement, NodeId server) const {
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    (node == server ? measurement.server_cpu : measurement.client_cpu) += nodes_[node].cpu;
    measurement.writes += nodes_[node].writes;
    if (nodes_[node].noise) measurement.note_noise(*nodes_[node].noise);
  }
}

}  // namespace perdura::harness
