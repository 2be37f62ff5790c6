// The process of a pool's active data objects (MCAS, section 4): executes plugins beside the shard,
// in the pool's part of its persistent memory.
//
// It serves a shard until that tells it to shut down or is gone: what a shard has in its own
// memory, such as who has locked what, does not outlive it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "systems/mcas/ado/channel.h"
#include "systems/mcas/ado/plugin.h"

namespace perdura::systems::mcas::ado {

using Plugins = std::vector<std::unique_ptr<Plugin>>;

class Process {
 public:
  // `memory`: the shard's, of which perhaps only parts can be accessed; must outlive the process.
  // `flushing`: as the shard's own.
  Process(pmem::Region& memory, std::shared_ptr<PeerProcess> shard, Flushing flushing,
          Plugins plugins)
      : memory_(memory, flushing),
        plugins_(std::move(plugins)),
        channel_(std::make_shared<Channel>(std::move(shard))) {}

  // Serves the shard. Returns when that is over.
  Task<> serve();

 private:
  class Calls;

  Task<> execute(MessageKind kind, WorkMessage order);
  // Of all plugins, which answer nothing; what one throws ends neither it nor the process.
  void tell(const std::function<void(Plugin&)>& what);
  // Of one plugin; what it throws is its error.
  static Task<Result> call(Plugin& plugin, MessageKind kind, Services& services,
                           const Invocation& work);

  Memory memory_;
  Plugins plugins_;
  std::shared_ptr<Channel> channel_;
  std::deque<Channel::Message> waiting_;  // that came while a work waited for an answer
  std::uint64_t last_call_ = 0;
};

}  // namespace perdura::systems::mcas::ado
