#include "systems/mcas/client.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/connect.h"
#include "rpc/messages.h"
#include "systems/mcas/parameters.h"

namespace perdura::systems::mcas {

using fabric::LocalBuffer;
using rpc::Call;

// --- connecting ----------------------------------------------------------------------------------

Task<std::unique_ptr<KvSession>> Client::connect(Thread& thread, fabric::Address server,
                                                 KvConfig config) {
  const Parameters parameters = Parameters::of(config);
  std::unique_ptr<Client> client(new Client(thread, parameters.queue_depth));
  co_await client->connect(server);
  co_return client;
}

Task<> Client::connect(fabric::Address server) {
  replies_ = thread_.endpoint.create_receive_queue(queue_depth_);
  fabric::Connection connection =
      co_await rpc::connect(thread_.endpoint, "the store", server, {replies_.get(), &completions_},
                            rpc::bytes_of(Hello{kProtocolVersion}));
  queue_pair_ = std::move(connection.queue_pair);
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
  allocate();
}

void Client::allocate() {
  const std::uint32_t depth = std::min(queue_depth_, welcome_.queue_depth);
  const Bytes request = sizeof(Request) + welcome_.max_key_size + welcome_.max_value_size;
  const Bytes reply = sizeof(Reply) + welcome_.max_value_size;
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

Task<Result<Bytes>> Client::get(Key key, std::span<std::byte> into) {
  if (key.size() > welcome_.max_key_size) co_return tl::unexpected(Error::not_found);
  const auto lease = co_await calls_.begin();
  const rpc::KeptReplies::Use use(kept_, lease.call());
  const Result<Reply> reply = co_await request(lease.call(), RequestKind::get, key, {});
  if (!reply) co_return tl::unexpected(reply.error());
  if (reply->value_length > into.size()) co_return tl::unexpected(Error::too_large);
  copy_bytes(into.first(reply->value_length),
             kept_.kept(lease.call()).bytes().subspan(sizeof(Reply), reply->value_length));
  co_return Bytes{reply->value_length};
}

Task<Result<void>> Client::put(Key key, Value value) {
  if (key.size() > welcome_.max_key_size || value.size() > welcome_.max_value_size) {
    co_return tl::unexpected(Error::too_large);
  }
  co_return co_await change(RequestKind::put, key, value);
}

Task<Result<void>> Client::erase(Key key) {
  if (key.size() > welcome_.max_key_size) co_return tl::unexpected(Error::not_found);
  co_return co_await change(RequestKind::erase, key, {});
}

Task<Result<void>> Client::change(RequestKind kind, Key key, Value value) {
  const auto lease = co_await calls_.begin();
  const rpc::KeptReplies::Use use(kept_, lease.call());
  const Result<Reply> reply = co_await request(lease.call(), kind, key, value);
  if (!reply) co_return tl::unexpected(reply.error());
  co_return Result<void>{};
}

Task<Result<Reply>> Client::request(Call call, RequestKind kind, Key key, Value value) {
  if (calls_.broken()) co_return tl::unexpected(Error::disconnected);
  const Request header{kind, call, static_cast<std::uint32_t>(key.size()),
                       static_cast<std::uint32_t>(value.size())};
  const LocalBuffer buffer = requests_[call].first(static_cast<std::uint32_t>(header.size()));
  rpc::write_message(buffer.bytes(), header);
  copy_bytes(buffer.bytes().subspan(sizeof header, key.size()), key);
  copy_bytes(buffer.bytes().subspan(sizeof header + key.size()), value);
  fabric::Operation send = queue_pair_->send(buffer);
  calls_.expect(call);
  send.post();
  const std::optional<Reply> reply = co_await calls_.answer_to(
      call, completions_,
      [this](const fabric::ReceiveCompletion& completion) { take(completion); });
  if (!co_await send) fail();
  if (!reply) co_return tl::unexpected(Error::disconnected);
  switch (reply->status) {
    case ReplyStatus::not_found:
      co_return tl::unexpected(Error::not_found);
    case ReplyStatus::out_of_space:
      co_return tl::unexpected(Error::out_of_space);
    case ReplyStatus::done:
      break;
  }
  co_return *reply;
}

// --- replies -------------------------------------------------------------------------------------

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
