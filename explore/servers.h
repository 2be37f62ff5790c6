// Starts the servers of a scenario on a simulated cluster, and says at which ports its clients are.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

// Starts all workers of one server, at ports 0, 1, ... `serve` runs on each worker's thread, and
// has to call services::CrashScenario::serve() there.
inline void start_server(sim::SimPlatform& platform, const services::CrashScenario& scenario,
                         NodeId node, const std::function<Task<>(Thread&)>& serve) {
  for (std::uint32_t worker = 0; worker < scenario.workers(); ++worker) {
    platform.start_service(node, static_cast<fabric::Port>(worker), CompletionMode::polling, serve);
  }
}

inline void start_servers(sim::SimPlatform& platform, const services::CrashScenario& scenario,
                          const std::function<Task<>(Thread&)>& serve) {
  for (NodeId node = 0; node < scenario.servers(); ++node) {
    start_server(platform, scenario, node, serve);
  }
}

// The port of a client that has already been started `before` times. Each start uses another port,
// since threads of earlier starts may still be finding out that their server has gone. Throws
// UsageError if there is none left: two clients with one port would take each other's messages.
inline fabric::Port port_of_client(const services::CrashScenario& scenario, std::uint32_t client,
                                   std::uint32_t before = 0) {
  constexpr std::uint64_t kFirstPortAfterWorkers = 0x1000;  // on the node of a server
  constexpr std::uint64_t kPortsOfSystems = 0x4000;         // and above, for their own threads
  const std::uint64_t first =
      scenario.has_node_of_its_own(client) ? scenario.servers() : kFirstPortAfterWorkers;
  const std::uint64_t port = first + std::uint64_t{before} * scenario.clients() + client;
  if (client >= scenario.clients() || port >= kPortsOfSystems) {
    throw UsageError(fmt::format(
        "client {} of {} has no port of its own at start {}; use fewer clients or failures", client,
        scenario.clients(), before + 1));
  }
  return static_cast<fabric::Port>(port);
}

}  // namespace perdura::explore
