#include "systems/mcas/client.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/connect.h"
#include "rpc/messages.h"

namespace perdura::systems::mcas {

using fabric::LocalBuffer;

namespace {

constexpr ReplyStatus kDisconnected = status_of(objects::Error::disconnected);

template <class E>
E error_of(ReplyStatus status);

template <>
objects::Error error_of(ReplyStatus status) {
  return mcas::error_of(status);
}
// For a store, whose pool is always open, and whose keys and values are within its limits.
template <>
kv::Error error_of(ReplyStatus status) {
  switch (mcas::error_of(status)) {
    case objects::Error::not_found:
      return kv::Error::not_found;
    case objects::Error::out_of_space:
      return kv::Error::out_of_space;
    case objects::Error::too_large:
      return kv::Error::too_large;
    case objects::Error::disconnected:
      return kv::Error::disconnected;
    default:
      return kv::Error::corrupt;
  }
}

// No stored key can be that long. So a key-value store, whose interface has no such limit, returns
// not_found.
template <class E>
constexpr E kTooLongKey = E::too_large;
template <>
constexpr kv::Error kTooLongKey<kv::Error> = kv::Error::not_found;

}  // namespace

// Includes the reply's text if the interface's error has room for it.
template <class E>
auto Client::failure_of(rpc::Call call, const Reply& reply) const {
  if constexpr (std::is_same_v<E, objects::Error>) {
    objects::Failure failure(error_of<E>(reply.status));
    if (reply.value_length == 0) return failure;
    const auto text = value_of(call, reply);
    failure.reason.assign(reinterpret_cast<const char*>(text.data()), text.size());
    return failure;
  } else {
    return error_of<E>(reply.status);
  }
}

// --- connecting ----------------------------------------------------------------------------------

Task<std::shared_ptr<Client>> Client::connect(Thread& thread, fabric::Address shard,
                                              std::uint32_t queue_depth) {
  const std::shared_ptr<Client> client(new Client(thread, queue_depth));
  co_await client->connect(shard);
  co_return client;
}

Task<> Client::connect(fabric::Address shard) {
  replies_ = thread_.endpoint.create_receive_queue(queue_depth_);
  fabric::Connection connection =
      co_await rpc::connect(thread_.endpoint, "the store", shard, {replies_.get(), &completions_},
                            rpc::bytes_of(Hello{kProtocolVersion}));
  queue_pair_ = std::move(connection.queue_pair);
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
  allocate();
}

void Client::allocate() {
  const std::uint32_t depth = std::min(queue_depth_, welcome_.queue_depth);
  const Bytes request = welcome_.longest_request();
  const Bytes reply = welcome_.longest_reply();
  const Bytes request_room = round_up(request, kCacheLine);
  const Bytes reply_room = round_up(reply, kCacheLine);
  buffers_ = thread_.node.create_region(
      fmt::format("session {} of port {}", welcome_.session, thread_.endpoint.address().port),
      depth * (request_room + reply_room), pmem::Medium::dram);
  const fabric::MemoryRegion memory =
      thread_.endpoint.register_memory(*buffers_, fabric::Access::local);
  requests_ = {memory, 0, request_room, static_cast<std::uint32_t>(request)};
  calls_.open(depth);
  kept_.open(*replies_,
             {memory, depth * request_room, reply_room, static_cast<std::uint32_t>(reply)}, depth);
}

// --- operations ----------------------------------------------------------------------------------

template <class E>
Task<Client::Expected<Bytes, E>> Client::get(PoolHandle pool, Key key, std::span<std::byte> into) {
  if (is_too_long(key)) co_return tl::unexpected(kTooLongKey<E>);
  const auto lease = co_await calls_.begin();
  const rpc::KeptReplies::Use use(kept_, lease.call());
  const Reply reply =
      co_await request(lease.call(), {.kind = RequestKind::get, .pool = pool}, key, {});
  if (reply.status != kDone) co_return tl::unexpected(failure_of<E>(lease.call(), reply));
  if (reply.value_length > into.size()) co_return tl::unexpected(E::too_large);
  copy_bytes(into.first(reply.value_length), value_of(lease.call(), reply));
  co_return Bytes{reply.value_length};
}

template <class E>
Task<Client::Expected<void, E>> Client::put(PoolHandle pool, Key key, Value value,
                                            std::uint8_t flags) {
  if (is_too_long(key) || value.size() > welcome_.max_value_size) {
    co_return tl::unexpected(E::too_large);
  }
  const auto lease = co_await calls_.begin();
  const rpc::KeptReplies::Use use(kept_, lease.call());
  const Reply reply = co_await request(
      lease.call(), {.kind = RequestKind::put, .flags = flags, .pool = pool}, key, value);
  if (reply.status != kDone) co_return tl::unexpected(failure_of<E>(lease.call(), reply));
  co_return Expected<void, E>{};
}

template <class E>
Task<Client::Expected<void, E>> Client::erase(PoolHandle pool, Key key) {
  if (is_too_long(key)) co_return tl::unexpected(kTooLongKey<E>);
  const auto lease = co_await calls_.begin();
  const rpc::KeptReplies::Use use(kept_, lease.call());
  const Reply reply =
      co_await request(lease.call(), {.kind = RequestKind::erase, .pool = pool}, key, {});
  if (reply.status != kDone) co_return tl::unexpected(failure_of<E>(lease.call(), reply));
  co_return Expected<void, E>{};
}

template Task<tl::expected<Bytes, kv::Error>> Client::get<kv::Error>(PoolHandle, Key,
                                                                     std::span<std::byte>);
template Task<tl::expected<void, kv::Error>> Client::put<kv::Error>(PoolHandle, Key, Value,
                                                                    std::uint8_t);
template Task<tl::expected<void, kv::Error>> Client::erase<kv::Error>(PoolHandle, Key);
template Task<objects::Result<Bytes>> Client::get<objects::Error>(PoolHandle, Key,
                                                                  std::span<std::byte>);
template Task<objects::Result<void>> Client::put<objects::Error>(PoolHandle, Key, Value,
                                                                 std::uint8_t);
template Task<objects::Result<void>> Client::erase<objects::Error>(PoolHandle, Key);

Task<objects::Result<void>> Client::tell(Request header, Key key, Value value) {
  const auto reply = co_await ask_bytes(header, key, value);
  if (!reply) co_return tl::unexpected(reply.error());
  co_return objects::Result<void>{};
}

Task<objects::Result<std::vector<std::byte>>> Client::ask_bytes(Request header, Key key,
                                                                Value value) {
  if (is_too_long(key, value)) co_return tl::unexpected(objects::Error::too_large);
  const auto lease = co_await calls_.begin();
  const rpc::KeptReplies::Use use(kept_, lease.call());
  const Reply reply = co_await request(lease.call(), header, key, value);
  if (reply.status != kDone) {
    co_return tl::unexpected(failure_of<objects::Error>(lease.call(), reply));
  }
  const auto bytes = value_of(lease.call(), reply);
  charge(Work::copy, bytes.size());
  co_return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Task<objects::Result<PoolHandle>> Client::open_pool(RequestKind kind, std::string_view name,
                                                    Bytes size, std::uint8_t flags) {
  const PoolSize argument{size};
  co_return co_await ask<PoolHandle>({.kind = kind, .flags = flags}, std::as_bytes(std::span(name)),
                                     rpc::bytes_of(argument));
}

// --- requests and replies ------------------------------------------------------------------------

Task<Reply> Client::request(rpc::Call call, Request header, Key key, Value value) {
  if (calls_.broken()) co_return Reply{.status = kDisconnected};
  header.id = call;
  header.key_length = static_cast<std::uint32_t>(key.size());
  header.value_length = static_cast<std::uint32_t>(value.size());
  const LocalBuffer buffer = requests_[call].first(static_cast<std::uint32_t>(header.size()));
  rpc::write_message(buffer.bytes(), header);
  copy_bytes(buffer.bytes().subspan(sizeof header, key.size()), key);
  copy_bytes(buffer.bytes().subspan(sizeof header + key.size()), value);
  fabric::RdmaOperation send = queue_pair_->send(buffer);
  calls_.expect(call);
  send.post();
  const std::optional<Reply> reply = co_await calls_.answer_to(
      call, completions_,
      [this](const fabric::ReceiveCompletion& completion) { take(completion); });
  if (!co_await send) fail();
  co_return reply.value_or(Reply{.status = kDisconnected});
}

void Client::take(const fabric::ReceiveCompletion& completion) {
  if (completion.status != fabric::Status::success) return fail();
  const auto reply = rpc::read_message<Reply>(completion.buffer.bytes());
  if (reply.id >= calls_.count()) return fail();
  kept_.keep(reply.id, completion.buffer_id);
  calls_.deliver(reply.id, reply);
}

void Client::fail() {
  kept_.close();
  calls_.fail();
}

}  // namespace perdura::systems::mcas
