// A session of the key-value interface: a client of the shard that has the shard's one pool open.
#pragma once

#include <memory>

#include "services/kv/kv.h"
#include "systems/mcas/client.h"

namespace perdura::systems::mcas {

class StoreSession final : public kv::KvSession {
 public:
  // Throws PlatformError if connecting fails.
  static Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, fabric::Address server,
                                                      kv::KvConfig config);

  Task<kv::Result<Bytes>> get(Key key, std::span<std::byte> into) override {
    return client_->get<kv::Error>(pool_, key, into);
  }
  Task<kv::Result<void>> put(Key key, Value value) override {
    return client_->put<kv::Error>(pool_, key, value);
  }
  Task<kv::Result<void>> erase(Key key) override { return client_->erase<kv::Error>(pool_, key); }
  kv::SessionCounts counts() const override { return {}; }

 private:
  StoreSession(std::shared_ptr<Client> client, PoolHandle pool)
      : client_(std::move(client)), pool_(pool) {}

  std::shared_ptr<Client> client_;
  PoolHandle pool_;
};

}  // namespace perdura::systems::mcas
