// A client thread's connection to a shard, over which the sessions of both interfaces make their
// requests: a key-value store's (store_session.h) and the pools' (session.h). Each operation is one
// request and its reply, which is read in the receive buffer in which it arrived.
//
// Operations on keys are templates over their error type E, which is that of either interface.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "systems/mcas/parameters.h"
#include "systems/mcas/protocol/messages.h"

namespace perdura::systems::mcas {

class Client {
 public:
  // Results of the pools' interface also carry the reason of a failure.
  template <class T, class E>
  using Expected =
      std::conditional_t<std::is_same_v<E, objects::Error>, objects::Result<T>, tl::expected<T, E>>;

  // Throws PlatformError if connecting fails.
  static Task<std::shared_ptr<Client>> connect(Thread& thread, fabric::Address shard,
                                               std::uint32_t queue_depth);

  template <class E>
  Task<Expected<void, E>> put(PoolHandle pool, Key key, Value value, std::uint8_t flags = 0);
  template <class E>
  Task<Expected<Bytes, E>> get(PoolHandle pool, Key key, std::span<std::byte> into);
  template <class E>
  Task<Expected<void, E>> erase(PoolHandle pool, Key key);

  // Any other request, whose reply has no value, any bytes, or a T.
  Task<objects::Result<void>> tell(Request request, Key key, Value value);
  Task<objects::Result<std::vector<std::byte>>> ask_bytes(Request request, Key key, Value value);
  template <class T>
  Task<objects::Result<T>> ask(Request request, Key key, Value value) {
    const auto bytes = co_await ask_bytes(request, key, value);
    if (!bytes) co_return tl::unexpected(bytes.error());
    co_return rpc::read_message<T>(*bytes);
  }
  // `kind` is create_pool or open_pool.
  Task<objects::Result<PoolHandle>> open_pool(RequestKind kind, std::string_view name, Bytes size,
                                              std::uint8_t flags);

  fabric::Endpoint& endpoint() { return thread_.endpoint; }

 private:
  Client(Thread& thread, std::uint32_t queue_depth) : thread_(thread), queue_depth_(queue_depth) {}

  Task<> connect(fabric::Address shard);
  void allocate();

  // Sends a request and waits for the reply, which `kept_` keeps for the call.
  Task<Reply> request(rpc::Call call, Request header, Key key, Value value);
  std::span<const std::byte> value_of(rpc::Call call, const Reply& reply) const {
    return kept_.kept(call).bytes().subspan(sizeof(Reply), reply.value_length);
  }
  // The error of a failed call, from its reply.
  template <class E>
  auto failure_of(rpc::Call call, const Reply& reply) const;
  // Requests that exceed the shard's limits are not sent.
  bool is_too_long(Key key) const { return key.size() > welcome_.max_key_size; }
  bool is_too_long(Key key, Value value) const {
    return is_too_long(key) || value.size() > welcome_.longest_value();
  }
  void take(const fabric::ReceiveCompletion& completion);
  // Called when the shard is gone or violates the protocol: ends all operations in flight.
  void fail();

  Thread& thread_;
  std::uint32_t queue_depth_;
  Welcome welcome_;
  std::unique_ptr<pmem::Region> buffers_;
  rpc::BufferRow requests_;
  rpc::Calls<Reply> calls_;
  rpc::KeptReplies kept_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> replies_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::mcas
