// The roles of drivers whose points have one server and clients.
#pragma once

#include "harness/config/experiment.h"
#include "harness/config/roles.h"

namespace perdura::bench {

inline harness::Roles client_server(NodeId client_nodes) {
  return harness::Roles({{"server"}, {"client", client_nodes}});
}

// As many client nodes as the point says, else all of `nodes` but one, else one.
inline harness::Roles client_server(const harness::PointSettings& settings, NodeId nodes) {
  const NodeId otherwise = nodes < 2 ? 1 : nodes - 1;
  return client_server(
      static_cast<NodeId>(settings.number_if_given("client_nodes").value_or(otherwise)));
}

}  // namespace perdura::bench
