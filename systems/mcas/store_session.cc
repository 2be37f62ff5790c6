#include "systems/mcas/store_session.h"

#include <fmt/core.h>

#include "platform/base/error.h"
#include "systems/mcas/partition.h"

namespace perdura::systems::mcas {

Task<std::unique_ptr<kv::KvSession>> StoreSession::connect(Thread& thread, fabric::Address server,
                                                           kv::KvConfig config) {
  const std::uint32_t queue_depth = Parameters::of(config).queue_depth;
  std::shared_ptr<Client> client = co_await Client::connect(thread, server, queue_depth);
  const auto pool = co_await client->open_pool(RequestKind::open_pool, kPartitionPool, 0, 0);
  if (!pool) {
    throw PlatformError(fmt::format("the store has no pool '{}': {}", kPartitionPool,
                                    objects::to_string(pool.error())));
  }
  co_return std::unique_ptr<kv::KvSession>(new StoreSession(std::move(client), *pool));
}

}  // namespace perdura::systems::mcas
