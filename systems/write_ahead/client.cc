#include "systems/write_ahead/client.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/connect.h"
#include "rpc/messages.h"

namespace perdura::systems::write_ahead {

using fabric::Access;
using fabric::LocalBuffer;
using rpc::Call;

// --- connections ---------------------------------------------------------------------------------

Task<> Client::connect_requests(fabric::Address server) {
  replies_ = thread_.endpoint.create_receive_queue(queue_depth_);
  const Hello hello{kProtocolVersion, Role::requests, 0, 0};
  fabric::Connection connection = co_await connect(server, hello);
  requests_ = std::move(connection.queue_pair);
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
  format_ = RecordFormat(welcome_.key_size, welcome_.value_size);
  log_tail_ = welcome_.position;
  allocate();
}

Task<> Client::connect_log(fabric::Address server) {
  const Hello hello{kProtocolVersion, Role::log, welcome_.session, welcome_.epoch};
  fabric::Connection connection = co_await connect(server, hello);
  log_ = std::move(connection.queue_pair);
}

Task<fabric::Connection> Client::connect(fabric::Address server, const Hello& hello) {
  return rpc::connect(thread_.endpoint, "the store", server, {replies_.get(), &completions_},
                      rpc::bytes_of(hello));
}

void Client::allocate() {
  const std::uint32_t depth = std::min(queue_depth_, welcome_.queue_depth);
  request_room_ = round_up(request_size(welcome_.max_key_size), kCacheLine);
  record_room_ = log_slot_size(welcome_.max_key_size, welcome_.max_value_size);
  reply_room_ = round_up(reply_size(welcome_.max_value_size), kCacheLine);
  const fabric::Address here = thread_.endpoint.address();
  buffers_ = thread_.node.create_region(
      fmt::format("session {} of port {}", welcome_.session, here.port),
      depth * (request_room_ + record_room_ + reply_room_), pmem::Medium::dram);
  buffer_memory_ = thread_.endpoint.register_memory(*buffers_, Access::local);
  calls_.open(depth);
  kept_.open(*replies_,
             {buffer_memory_, depth * (request_room_ + record_room_), reply_room_,
              static_cast<std::uint32_t>(reply_room_)},
             depth);
}

// --- operations ----------------------------------------------------------------------------------

Task<kv::Result<Bytes>> Client::get(kv::Key key, std::span<std::byte> into) {
  if (key.size() > welcome_.max_key_size) co_return tl::unexpected(kv::Error::not_found);
  const Lease held = co_await lease();
  const std::optional<Reply> reply = co_await request(held.call(), RequestKind::get, key, 0);
  if (!reply) co_return tl::unexpected(kv::Error::disconnected);
  if (reply->status != ReplyStatus::done) co_return tl::unexpected(error_of(reply->status));
  if (reply->value_length > into.size()) co_return tl::unexpected(kv::Error::too_large);
  copy_bytes(into.first(reply->value_length),
             kept_.kept(held.call()).bytes().subspan(sizeof(Reply), reply->value_length));
  co_return Bytes{reply->value_length};
}

Task<kv::Result<void>> Client::erase(kv::Key key) {
  if (key.size() > welcome_.max_key_size) co_return tl::unexpected(kv::Error::not_found);
  const Lease held = co_await lease();
  const std::optional<Reply> reply = co_await request(held.call(), RequestKind::erase, key, 0);
  if (!reply) co_return tl::unexpected(kv::Error::disconnected);
  if (reply->status != ReplyStatus::done) co_return tl::unexpected(error_of(reply->status));
  co_return kv::Result<void>{};
}

Task<std::optional<Reply>> Client::request(Call call, RequestKind kind, kv::Key key,
                                           std::uint32_t value_length) {
  if (calls_.broken()) co_return std::nullopt;
  kept_.post_again(call);  // the receive buffer of the operation's previous reply
  const LocalBuffer buffer = request_buffer(call);
  rpc::write_message(buffer.bytes(),
                     Request{kind, call, static_cast<std::uint32_t>(key.size()), value_length});
  copy_bytes(buffer.bytes().subspan(sizeof(Request), key.size()), key);
  fabric::RdmaOperation send =
      requests_->send(buffer.first(static_cast<std::uint32_t>(request_size(key.size()))));
  calls_.expect(call);
  send.post();
  const std::optional<Reply> reply = co_await reply_to(call);
  if (!co_await send) fail();
  co_return reply;
}

Task<std::optional<Reply>> Client::send_to_log(Call call, LocalBuffer record) {
  if (calls_.broken()) co_return std::nullopt;
  fabric::RdmaOperation send = log_->send(record);
  calls_.expect(call);
  send.post();
  log_sends_.sent(call);
  const std::optional<Reply> reply = co_await reply_to(call);
  if (!co_await send) fail();
  if (reply) kept_.post_again(call);
  co_return reply;
}

LocalBuffer Client::write_record(Call call, kv::Key key, kv::Value value) {
  const LocalBuffer buffer = record_buffer(call);
  return buffer.first(static_cast<std::uint32_t>(format_.write(buffer.bytes(), key, value)));
}

void Client::seal(const LocalBuffer& record, kv::Key key, kv::Value value, std::uint64_t position) {
  format_.seal(record.bytes(), format_.typical(key.size(), value.size()),
               position / welcome_.log_slots);
}

// --- replies -------------------------------------------------------------------------------------

Task<std::optional<Reply>> Client::reply_to(Call call) {
  return calls_.answer_to(call, completions_, [this](const fabric::ReceiveCompletion& completion) {
    take(completion);
  });
}

// A reply to a request names its call; replies to SENDs to the log arrive in the order of the
// SENDs.
void Client::take(const fabric::ReceiveCompletion& completion) {
  if (completion.status != fabric::Status::success) return fail();
  const auto reply = rpc::read_message<Reply>(completion.buffer.bytes());
  const std::optional<Call> call =
      log_ && completion.queue_pair == log_.get() ? log_sends_.next() : reply.id;
  if (!call || *call >= calls_.count()) return fail();
  log_tail_ = std::max(log_tail_, reply.position);
  kept_.keep(*call, completion.buffer_id);
  calls_.deliver(*call, reply);
}

void Client::fail() {
  kept_.close();
  calls_.fail();
}

Task<Client::Lease> Client::lease() {
  auto call = co_await calls_.begin();
  co_return Lease(std::move(call), kept_);
}

Task<Client::LogTurn> Client::log_turn() {
  while (log_turns_ == welcome_.log_window) co_await wait(waiting_for_turn_);
  ++log_turns_;
  co_return LogTurn(*this);
}

void Client::end_log_turn() {
  --log_turns_;
  waiting_for_turn_.wake_one();
}

LocalBuffer Client::request_buffer(Call call) const {
  return buffer_memory_.local(call * request_room_, static_cast<std::uint32_t>(request_room_));
}

LocalBuffer Client::record_buffer(Call call) const {
  return buffer_memory_.local(calls_.count() * request_room_ + call * record_room_,
                              static_cast<std::uint32_t>(record_room_));
}

}  // namespace perdura::systems::write_ahead
