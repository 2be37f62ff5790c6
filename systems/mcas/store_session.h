// A session of the key-value interface: a client of the shard that has the shard's one pool open.
#pragma once

#include <memory>

#include "services/kv/kv.h"
#include "systems/mcas/client.h"

namespace perdura::systems::mcas {

class StoreSession final : public KvSession {
 public:
  // Throws PlatformError if connecting fails.
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, fabric::Address server,
                                                  KvConfig config);

  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override {
    return client_->get<Error>(pool_, key, into);
  }
  Task<Result<void>> put(Key key, Value value) override {
    return client_->put<Error>(pool_, key, value);
  }
  Task<Result<void>> erase(Key key) override { return client_->erase<Error>(pool_, key); }
  SessionCounts counts() const override { return {}; }

 private:
  StoreSession(std::shared_ptr<Client> client, PoolHandle pool)
      : client_(std::move(client)), pool_(pool) {}

  std::shared_ptr<Client> client_;
  PoolHandle pool_;
};

}  // namespace perdura::systems::mcas
