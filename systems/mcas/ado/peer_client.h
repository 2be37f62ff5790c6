// What a plugin is a client of another shard by: the shard's messages over the connection that
// Services gives it (MCAS, section 2: back-flow). One request at a time. Keys and values travel in
// messages, and those of the peer limit how long they may be.
//
// Every function is given the Services of the work that is under way.
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

  // `unsupported` if the shard is configured to be no client, `disconnected` if the peer is not
  // reached. A connection that there was ends.
  Task<Expected<void>> connect(Services& services);
  // Whether there was a connection when it was last used.
  bool connected() const { return connected_; }

  // Creates it, with `size` bytes, if it is not there.
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
