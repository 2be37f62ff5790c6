// A plugin that keeps a copy of a pool on another shard, as a client of that (MCAS, section 2:
// back-flow). When a key was put or erased, or an invocation has worked on it, it makes the key
// what it is now in the other shard's pool of the same name, and answers only when that shard has
// acknowledged it. With the parameters `plugin_signals` and `plugin_consent` a client is not
// answered before that, so what is acknowledged is durable on both shards.
//
// If the peer cannot be reached or does not take it, the client's operation fails. The plugin does
// not go on alone: a peer that is only out of reach would have acknowledged values of the past.
// What a failed operation has changed here stays, and is copied with the key's next change.
//
// Behind plugins that change values it copies what they have made. Nothing is answered to
// invocations.
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
  // Nothing: there is no such key.
  static Task<Answer<std::string>> value_of(Services& services, const Invocation& work);
  Task<objects::Result<void>> copy(Services& services, const std::string& key,
                                   const std::optional<std::string>& value);
  Task<objects::Result<void>> connect(Services& services);

  PeerClient peer_;
  PoolHandle pool_ = kNoPool;
};

}  // namespace perdura::systems::mcas::ado
