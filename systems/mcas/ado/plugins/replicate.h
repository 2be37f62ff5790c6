// A plugin that keeps a copy of a pool on another shard, as a client of that shard (MCAS, section
// 2: back-flow). When a key was put or erased, or an invocation has worked on it, the plugin copies
// the key's current state to the other shard's pool of the same name, and answers only when that
// shard has acknowledged it. With the parameters `plugin_signals` and `plugin_consent` the client's
// answer waits for that, so what is acknowledged is durable on both shards.
//
// If the peer cannot be reached or refuses the change, the client's operation fails. The plugin
// does not continue alone: a peer that was only out of reach would then return outdated values. The
// local change of a failed operation remains, and is copied with the key's next change.
//
// If other plugins precede it in the list, it copies the values that they have produced. It adds no
// response to invocations.
#pragma once

#include <optional>
#include <string>

#include "systems/mcas/ado/peer_client.h"
#include "systems/mcas/ado/plugin.h"

namespace perdura::systems::mcas::ado {

class Replicate final : public Plugin {
 public:
  Task<Result> do_work(Services& services, const Invocation& work) override;

 private:
  // The key's value, or `not_found` if the key does not exist.
  static Task<Answer<std::string>> value_of(Services& services, const Invocation& work);
  Task<objects::Result<void>> copy(Services& services, const std::string& key,
                                   const std::optional<std::string>& value);
  Task<objects::Result<void>> connect(Services& services);

  PeerClient peer_;
  PoolHandle pool_ = kNoPool;
};

}  // namespace perdura::systems::mcas::ado
