// The process of a pool's active data objects (MCAS, section 4): executes plugins beside the shard,
// in the same persistent memory. It runs on a node of the shard's machine, and listens on its
// thread's endpoint, to which the shard's host connects.
//
// It serves one shard at a time, until that tells it to shut down or its connection ends: what a
// shard has in its own memory, such as who has locked what, does not outlive it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/platform.h"
#include "systems/mcas/ado/channel.h"
#include "systems/mcas/ado/plugin.h"

namespace perdura::systems::mcas::ado {

using Plugins = std::vector<std::unique_ptr<Plugin>>;

class Process {
 public:
  // `memory`: the name of the shard's memory. `flushing`: as the shard's own. `channel`: the name
  // of the host's rings, if that is another.
  Process(Thread& thread, std::string memory, Flushing flushing, Plugins plugins,
          std::string channel = {})
      : thread_(thread),
        name_(std::move(memory)),
        channel_name_(channel.empty() ? name_ : std::move(channel)),
        flushing_(flushing),
        plugins_(std::move(plugins)) {}

  // Waits for a shard, and serves it. Returns when that is over. Throws UsageError if there is no
  // memory of this name when a shard connects.
  Task<> serve();

 private:
  class Calls;

  std::unique_ptr<fabric::QueuePair> accept(fabric::ConnectionRequest& request,
                                            fabric::CompletionQueue& completions);
  static Task<> watch_connection(std::shared_ptr<Channel> channel,
                                 std::shared_ptr<fabric::CompletionQueue> completions);
  Task<CompletionMessage> execute(MessageKind kind, WorkMessage order);
  // Of one plugin; what it throws is its error.
  static Task<Result> call(Plugin& plugin, MessageKind kind, Services& services,
                           const Invocation& work);

  Thread& thread_;
  std::string name_;
  std::string channel_name_;
  Flushing flushing_;
  Plugins plugins_;
  std::unique_ptr<pmem::Region> region_;
  std::shared_ptr<Channel> channel_;
  std::deque<Channel::Message> waiting_;  // that came while a work waited for an answer
  std::uint64_t last_call_ = 0;
  bool gone_ = false;  // the shard
};

}  // namespace perdura::systems::mcas::ado
