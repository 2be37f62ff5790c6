// A member's end of clustering (MCAS, section 5): says to all who watch it that it lives, once in
// each heartbeat, and in the end that it leaves. It uses an endpoint of its own, on a thread of its
// own, so that a shard whose requests take long is not taken for dead.
//
// Whoever watches asks for it by connecting, so a member keeps no list of others, and clients
// watch in the same way as members do.
#pragma once

#include <memory>
#include <vector>

#include "platform/platform.h"
#include "systems/mcas/cluster/messages.h"

namespace perdura::systems::mcas::cluster {

class Beacon : public std::enable_shared_from_this<Beacon> {
 public:
  // `life`: of this process; larger than those of the member's processes before it.
  Beacon(Thread& thread, const Timing& timing, Life life);

  // Accepts watchers and sends them heartbeats; does not end by itself.
  Task<> serve();
  // Tells all watchers that this member ends of its own accord. Those that can be told have been
  // when the task ends, and none is accepted any more.
  Task<> leave();

 private:
  struct Session {
    std::unique_ptr<fabric::ReceiveQueue> nothing;  // a watcher sends no message
    std::unique_ptr<fabric::QueuePair> queue_pair;
  };

  void accept(fabric::ConnectionRequest& request);
  // One heartbeat is under way at a time: a watcher that stands still takes none.
  Task<> tell(std::shared_ptr<Session> session);
  // The message lies in the region, and does not change.
  fabric::LocalBuffer message(bool leaves) const;

  Thread& thread_;
  Timing timing_;
  Life life_;
  bool leaving_ = false;
  std::unique_ptr<pmem::Region> messages_;
  fabric::MemoryRegion memory_;
  fabric::CompletionQueue completions_;  // of which nothing is expected
  std::vector<std::shared_ptr<Session>> sessions_;
};

}  // namespace perdura::systems::mcas::cluster
