// Connects a queue pair to its peer's: by an exchange of queue pair numbers (InfiniBand, RoCE), or
// by the RDMA connection manager, which iWARP requires. The ends exchange their addresses over the
// control plane.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "platform/fabric/types.h"
#include "platform/fabric/verbs/device.h"
#include "platform/fabric/verbs/gid.h"
#include "platform/runtime/task.h"

namespace perdura::fabric::verbs {

class VerbsEndpoint;

// The properties of a queue pair that a peer needs to connect to it.
struct QueuePairAddress {
  std::uint32_t number = 0;
  std::uint32_t first_packet = 0;
  std::uint16_t lid = 0;
  std::uint8_t mtu = IBV_MTU_1024;
  std::uint8_t reads_taken = 1;  // READs and atomics that it answers at a time
  GidBytes gid{};                // on iWARP the IP address
  std::uint32_t service = 0;     // on iWARP the connection manager's port
};

// The connection establishment of one queue pair; must be destroyed before it.
class BringUp {
 public:
  BringUp() = default;
  virtual ~BringUp() = default;
  BringUp(const BringUp&) = delete;
  BringUp& operator=(const BringUp&) = delete;

  virtual QueuePairAddress address() const = 0;
  // Called at the passive end, which can receive as soon as the peer's connect() has succeeded.
  // Throws PlatformError if the device refuses.
  virtual void accept(Address peer, const QueuePairAddress& theirs) = 0;
  // Called at the active end. Throws PlatformError if the device refuses; returns `disconnected` if
  // the peer has gone meanwhile, `retry_exceeded` if it does not answer until the deadline.
  virtual Task<Status> connect(Address peer, QueuePairAddress theirs, Time deadline) = 0;
  // True if the connection itself signals its end, in order after all data of the peer. If so, the
  // control plane's notification would come too early and is not used.
  virtual bool tells_end() const = 0;
};

std::uint32_t random_packet_number();
// The number of READs and atomics that queue pairs of the device answer at a time, and that they
// have under way if the peer answers `taken`.
std::uint8_t reads_answered(const Device& device);
std::uint8_t reads_under_way(const Device& device, std::uint8_t taken);
// Changes the state to INIT, with all rights that the device has. Returns an errno if it refuses.
int change_to_init(const Device& device, ibv_qp* pair);

// Creates the implementation for the device's transport; `id` is the endpoint's name for the queue
// pair.
std::unique_ptr<BringUp> make_bring_up(VerbsEndpoint& endpoint, std::uint32_t id, ibv_qp* pair);

}  // namespace perdura::fabric::verbs
