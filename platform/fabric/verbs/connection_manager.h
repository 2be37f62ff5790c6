// The RDMA connection manager (librdmacm), through which the queue pairs of iWARP devices are
// connected: it makes the TCP connection that carries them. The accepting end listens; the
// initiator names the queue pair that it wants, which it has learned over the control plane.
//
// In a build without librdmacm the functions exist but report that it is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "platform/fabric/verbs/bring_up.h"

namespace perdura::fabric::verbs {

// One for all queue pairs of an iWARP device.
class ConnectionManager {
 public:
  ConnectionManager() = default;
  virtual ~ConnectionManager() = default;
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  virtual std::unique_ptr<BringUp> bring_up(VerbsEndpoint& endpoint, std::uint32_t id,
                                            ibv_qp* pair) = 0;
};

// Throws PlatformError if it cannot listen at the device's address.
std::unique_ptr<ConnectionManager> make_connection_manager(const Device& device);

// The IPv4 addresses of this host (in a network namespace, of that one) that belong to a port of an
// iWARP device.
struct PortAddresses {
  std::vector<std::string> all{};
  std::string problem{};  // the reason if there are none
};
PortAddresses addresses_of(const std::string& device, unsigned port);

}  // namespace perdura::fabric::verbs
