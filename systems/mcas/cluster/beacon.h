// A member's side of clustering (MCAS, section 5): sends a heartbeat to all watchers once per
// interval, and finally a message that the member leaves. It uses an endpoint and a thread of its
// own, so that a shard whose requests take long is not considered dead.
//
// Watchers subscribe by connecting, so a member keeps no list of others, and clients watch in the
// same way as members do.
#pragma once

#include <memory>
#include <vector>

#include "platform/platform.h"
#include "systems/mcas/cluster/messages.h"

namespace perdura::systems::mcas::cluster {

class Beacon : public std::enable_shared_from_this<Beacon> {
 public:
  // `life` identifies this process; it must be larger than those of the member's earlier processes.
  Beacon(Thread& thread, const Timing& timing, Life life);

  // Accepts watchers and sends them heartbeats; does not end by itself.
  Task<> serve();
  // Tells all watchers that this member ends of its own accord. Returns when all that can be
  // reached have been told; no more watchers are accepted.
  Task<> leave();

 private:
  struct WatcherConnection {
    std::unique_ptr<fabric::ReceiveQueue> no_messages;  // a watcher sends no messages
    std::unique_ptr<fabric::QueuePair> queue_pair;
  };

  void accept(fabric::ConnectionRequest& request);
  // Sends heartbeats to one watcher, one at a time: a watcher that does not respond gets no more.
  Task<> tell(std::shared_ptr<WatcherConnection> watcher);
  // The message in the region, which never changes: a heartbeat, or the last message.
  fabric::LocalBuffer message(bool leaves) const;

  Thread& thread_;
  Timing timing_;
  Life life_;
  bool leaving_ = false;
  std::unique_ptr<pmem::Region> messages_;
  fabric::MemoryRegion memory_;
  fabric::CompletionQueue completions_;  // no receive completion is expected here
  std::vector<std::shared_ptr<WatcherConnection>> watchers_;
};

}  // namespace perdura::systems::mcas::cluster
