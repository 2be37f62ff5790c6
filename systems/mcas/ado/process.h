// The process of a pool's active data objects (MCAS, section 4): executes plugins outside of the
// shard, on the pool's part of the shard's persistent memory.
//
// It serves its shard until the shard tells it to shut down or is gone. It does not outlive the
// shard, since the shard's volatile state is lost with it, such as who has locked which key.
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
  // `memory` is the shard's, perhaps with only parts of it accessible; it must outlive the process.
  // `flushing` must be the shard's own.
  Process(pmem::Region& memory, std::shared_ptr<PeerProcess> shard, Flushing flushing,
          Plugins plugins)
      : memory_(memory, flushing),
        plugins_(std::move(plugins)),
        channel_(std::make_shared<Channel>(std::move(shard))) {}

  // Serves the shard until the shard tells it to shut down or is gone.
  Task<> serve();

 private:
  class Calls;

  Task<> execute(MessageKind kind, WorkMessage order);
  // Calls all plugins. Exceptions are ignored.
  void tell(const std::function<void(Plugin&)>& what);
  // Calls one plugin; an exception becomes its error.
  static Task<Result> call(Plugin& plugin, MessageKind kind, Services& services,
                           const Invocation& work);

  Memory memory_;
  Plugins plugins_;
  std::shared_ptr<Channel> channel_;
  std::deque<Channel::Message> waiting_;  // messages that arrived before an answer
  std::uint64_t last_call_ = 0;
};

}  // namespace perdura::systems::mcas::ado
