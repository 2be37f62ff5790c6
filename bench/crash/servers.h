// Starts the servers of a scenario on a simulated cluster.
#pragma once

#include <functional>

#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::bench {

// Starts all workers of one server, at ports 0, 1, ... `serve` runs on each worker's thread, and
// has to call services::CrashScenario::serve() there.
inline void start_server(sim::SimPlatform& platform, const services::CrashScenario& scenario,
                         NodeId node, const std::function<Task<>(Thread&)>& serve) {
  for (std::uint32_t worker = 0; worker < scenario.workers(); ++worker) {
    platform.start_service(node, static_cast<fabric::Port>(worker), CompletionMode::polling, serve);
  }
}

// Ports of clients on nodes of servers begin here, behind those of the workers.
inline constexpr fabric::Port kPortsOfClients = 0x1000;

inline void start_servers(sim::SimPlatform& platform, const services::CrashScenario& scenario,
                          const std::function<Task<>(Thread&)>& serve) {
  for (NodeId node = 0; node < scenario.servers(); ++node) {
    start_server(platform, scenario, node, serve);
  }
}

}  // namespace perdura::bench
