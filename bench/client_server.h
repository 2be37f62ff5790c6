// The roles of drivers whose points have servers and clients.
#pragma once

#include "harness/config/experiment.h"
#include "harness/config/roles.h"

namespace perdura::bench {

inline harness::Roles client_server(NodeId client_nodes, NodeId servers = 1) {
  return harness::Roles({{"server", servers}, {"client", client_nodes}});
}

// The number of client nodes is what the point says; else every one of `nodes` that is not a
// server; else one.
inline harness::Roles client_server(const harness::PointSettings& settings, NodeId nodes,
                                    NodeId servers = 1) {
  const NodeId otherwise = nodes <= servers ? 1 : nodes - servers;
  return client_server(
      static_cast<NodeId>(settings.number_if_given("client_nodes").value_or(otherwise)), servers);
}

}  // namespace perdura::bench
