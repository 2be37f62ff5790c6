// A plugin's client of another shard (MCAS, section 2: back-flow). It sends that shard's messages
// over the connection that Services provides. One request at a time. Keys and values travel in
// messages, whose length the peer limits.
//
// Every function takes the Services of the current invocation.
#pragma once

#include <string>
#include <string_view>

#include "services/objects/objects.h"
#include "systems/mcas/ado/plugin.h"
#include "systems/mcas/protocol/messages.h"

namespace perdura::systems::mcas::ado {

class PeerClient {
 public:
  template <class T>
  using Expected = objects::Result<T>;

  // Connects, and ends an earlier connection. Returns `unsupported` if the shard is not configured
  // to be a client, and `disconnected` if the peer cannot be reached.
  Task<Expected<void>> connect(Services& services);
  // True if the connection existed when it was last used.
  bool connected() const { return connected_; }

  // Opens the pool, and creates it with `size` bytes if it does not exist.
  Task<Expected<PoolHandle>> open_pool(Services& services, std::string name, Bytes size);
  // A change is as durable as the peer's engine makes it.
  Task<Expected<void>> put(Services& services, PoolHandle pool, std::string_view key,
                           std::string_view value);
  Task<Expected<std::string>> get(Services& services, PoolHandle pool, std::string_view key);
  Task<Expected<void>> erase(Services& services, PoolHandle pool, std::string_view key);

 private:
  Task<Expected<std::string>> ask(Services& services, Request header, std::string_view key,
                                  std::string_view value);
  Expected<std::string> lost();

  Welcome limits_;
  bool connected_ = false;
};

}  // namespace perdura::systems::mcas::ado
