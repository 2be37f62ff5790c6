// The client's session with a hash index: put and erase are requests to the server, a get looks the
// key up with one-sided READs.
//
// `Design` is the index (bucket_hash/system.h). Its IndexReader is constructed from the server's
// Plan and has
//
//   Bytes read_room() const                                       size of its largest READ
//   Task<std::optional<LookedUp>> look_up(Reads reads, Slot key)  nullopt if the connection broke
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "systems/bucket_hash/client.h"

namespace perdura::systems::bucket_hash {

template <class Design>
class IndexSession final : public kv::KvSession {
 public:
  static Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, fabric::Address server,
                                                      kv::KvConfig config) {
    const auto parameters = Design::Parameters::of(config);
    std::unique_ptr<IndexSession> session(new IndexSession(thread, parameters.queue_depth));
    co_await session->client_.connect(server);
    session->reader_.emplace(session->client_.plan());
    session->client_.make_lanes(session->reader_->read_room());
    co_return session;
  }

  Task<kv::Result<Bytes>> get(kv::Key key, std::span<std::byte> into) override {
    if (!Slot::takes_key(key)) co_return tl::unexpected(kv::Error::not_found);
    const Slot wanted = Slot::of(key);
    const auto lease = co_await client_.begin();
    const std::optional<LookedUp> found =
        co_await reader_->look_up(Reads(client_, lease.call()), wanted);
    if (!found) co_return tl::unexpected(kv::Error::disconnected);
    if (!found->item) co_return tl::unexpected(kv::Error::not_found);
    const kv::Value value = found->item->value_bytes();
    if (value.size() > into.size()) co_return tl::unexpected(kv::Error::too_large);
    copy_bytes(into.first(value.size()), value);
    co_return Bytes{value.size()};
  }
  Task<kv::Result<void>> put(kv::Key key, kv::Value value) override {
    if (!Slot::takes(key, value)) co_return tl::unexpected(kv::Error::too_large);
    co_return co_await client_.request({RequestKind::put, Slot::of(key, value)});
  }
  Task<kv::Result<void>> erase(kv::Key key) override {
    if (!Slot::takes_key(key)) co_return tl::unexpected(kv::Error::not_found);
    co_return co_await client_.request({RequestKind::erase, Slot::of(key)});
  }
  kv::SessionCounts counts() const override { return client_.counts(); }

 private:
  IndexSession(Thread& thread, std::uint32_t lanes) : client_(thread, lanes) {}

  Client client_;
  std::optional<typename Design::IndexReader> reader_;  // set once connected
};

}  // namespace perdura::systems::bucket_hash
