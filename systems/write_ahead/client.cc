#include "systems/write_ahead/client.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::write_ahead {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::Status;

namespace {

std::vector<std::byte> bytes_of(const Hello& hello) {
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  return {bytes.begin(), bytes.end()};
}

void require(const fabric::Connection& connection, fabric::Address server) {
  if (connection.status == Status::success) return;
  throw PlatformError(fmt::format("cannot connect to the store at node {}, port {}: {}",
                                  server.node, server.port, to_string(connection.status)));
}

}  // namespace

// --- connections ---------------------------------------------------------------------------------

Task<> Client::connect_requests(fabric::Address server) {
  replies_ = thread_.endpoint.create_receive_queue(queue_depth_);
  fabric::Connection connection = co_await thread_.endpoint.connect(
      server, {replies_.get(), &completions_}, bytes_of({kProtocolVersion, Role::requests, 0, 0}));
  require(connection, server);
  requests_ = std::move(connection.queue_pair);
  welcome_ = read_message<Welcome>(connection.private_data);
  format_ = RecordFormat(welcome_.key_size, welcome_.value_size);
  log_tail_ = welcome_.position;
  allocate();
}

Task<> Client::connect_log(fabric::Address server) {
  fabric::Connection connection = co_await thread_.endpoint.connect(
      server, {replies_.get(), &completions_},
      bytes_of({kProtocolVersion, Role::log, welcome_.session, welcome_.epoch}));
  require(connection, server);
  log_ = std::move(connection.queue_pair);
}

void Client::allocate() {
  const Bytes depth = std::min(queue_depth_, welcome_.queue_depth);
  request_room_ = round_up(request_size(welcome_.max_key_size), kCacheLine);
  record_room_ = log_slot_size(welcome_.max_key_size, welcome_.max_value_size);
  reply_room_ = round_up(reply_size(welcome_.max_value_size), kCacheLine);
  const fabric::Address here = thread_.endpoint.address();
  buffers_ = thread_.node.create_region(
      fmt::format("session {} of port {}", welcome_.session, here.port),
      depth * (request_room_ + record_room_ + reply_room_), pmem::Medium::dram);
  buffer_memory_ = thread_.endpoint.register_memory(*buffers_, Access::local);
  slots_ = std::vector<Slot>(depth);
  for (std::uint32_t i = 0; i < depth; ++i) {
    free_slots_.push_back(i);
    free_reply_buffers_.push_back(i);
  }
}

// --- operations ----------------------------------------------------------------------------------

Task<Result<Bytes>> Client::get(Key key, std::span<std::byte> into) {
  if (key.size() > welcome_.max_key_size) co_return tl::unexpected(Error::not_found);
  const Lease held = co_await lease();
  const std::optional<Reply> reply = co_await request(held.slot(), RequestKind::get, key, 0);
  if (!reply) co_return tl::unexpected(Error::disconnected);
  if (reply->status != ReplyStatus::done) co_return tl::unexpected(error_of(reply->status));
  if (reply->value_length > into.size()) co_return tl::unexpected(Error::too_large);
  const LocalBuffer buffer = reply_buffer(slots_[held.slot()].buffer);
  copy_bytes(into.first(reply->value_length),
             buffer.bytes().subspan(sizeof(Reply), reply->value_length));
  co_return Bytes{reply->value_length};
}

Task<Result<void>> Client::erase(Key key) {
  if (key.size() > welcome_.max_key_size) co_return tl::unexpected(Error::not_found);
  const Lease held = co_await lease();
  const std::optional<Reply> reply = co_await request(held.slot(), RequestKind::erase, key, 0);
  if (!reply) co_return tl::unexpected(Error::disconnected);
  if (reply->status != ReplyStatus::done) co_return tl::unexpected(error_of(reply->status));
  co_return Result<void>{};
}

Task<std::optional<Reply>> Client::request(std::uint32_t slot, RequestKind kind, Key key,
                                           std::uint32_t value_length) {
  if (broken_) co_return std::nullopt;
  repost(slots_[slot]);  // of an earlier request of the operation
  const LocalBuffer buffer = request_buffer(slot);
  write_message(buffer.bytes(),
                Request{kind, slot, static_cast<std::uint32_t>(key.size()), value_length});
  copy_bytes(buffer.bytes().subspan(sizeof(Request), key.size()), key);
  fabric::Operation send =
      requests_->send(buffer.first(static_cast<std::uint32_t>(request_size(key.size()))));
  send.post();
  const std::optional<Reply> reply = co_await reply_for(slot);
  if (!co_await send) fail();
  co_return reply;
}

Task<std::optional<Reply>> Client::send_to_log(std::uint32_t slot, LocalBuffer record) {
  if (broken_) co_return std::nullopt;
  fabric::Operation send = log_->send(record);
  send.post();
  log_sends_.push_back(slot);
  const std::optional<Reply> reply = co_await reply_for(slot);
  if (!co_await send) fail();
  if (reply) repost(slots_[slot]);
  co_return reply;
}

LocalBuffer Client::write_record(std::uint32_t slot, Key key, Value value) {
  const LocalBuffer buffer = record_buffer(slot);
  return buffer.first(static_cast<std::uint32_t>(format_.write(buffer.bytes(), key, value)));
}

void Client::seal(const LocalBuffer& record, Key key, Value value, std::uint64_t position) {
  format_.seal(record.bytes(), format_.typical(key.size(), value.size()),
               position / welcome_.log_slots);
}

// --- replies -------------------------------------------------------------------------------------

Task<std::optional<Reply>> Client::reply_for(std::uint32_t number) {
  Slot& slot = slots_[number];
  while (!slot.answered && !broken_) {
    if (receiving_) {
      co_await wait(slot.waiting);
      continue;
    }
    receiving_ = true;
    const fabric::ReceiveCompletion completion = co_await completions_.next();
    receiving_ = false;
    deliver(completion);
  }
  // Somebody else takes over.
  if (!receiving_) {
    for (Slot& other : slots_) {
      if (other.waiting.wake_one()) break;
    }
  }
  if (!slot.answered) co_return std::nullopt;
  slot.answered = false;
  co_return slot.reply;
}

void Client::deliver(const fabric::ReceiveCompletion& completion) {
  if (completion.status != Status::success) return fail();
  const auto reply = read_message<Reply>(completion.buffer.bytes());
  std::uint32_t number = reply.id;
  if (completion.queue_pair == log_.get() && log_ != nullptr && !log_sends_.empty()) {
    number = log_sends_.front();
    log_sends_.pop_front();
  }
  if (number >= slots_.size()) return fail();
  log_tail_ = std::max(log_tail_, reply.position);
  Slot& slot = slots_[number];
  slot.reply = reply;
  slot.buffer = completion.buffer_id;
  slot.has_buffer = true;
  slot.answered = true;
  slot.waiting.wake_one();
}

void Client::fail() {
  broken_ = true;
  for (Slot& slot : slots_) slot.waiting.wake_all();
}

// --- slots ---------------------------------------------------------------------------------------

Task<Client::Lease> Client::lease() {
  while (free_slots_.empty()) co_await wait(waiting_for_slot_);
  const std::uint32_t number = free_slots_.back();
  free_slots_.pop_back();
  // One that ended without its reply has left a buffer posted.
  Slot& slot = slots_[number];
  if (!slot.expects_reply) {
    post_reply_buffer(free_reply_buffers_.back());
    free_reply_buffers_.pop_back();
    slot.expects_reply = true;
  }
  co_return Lease(*this, number);
}

void Client::give_back(std::uint32_t number) {
  Slot& slot = slots_[number];
  if (slot.has_buffer) {
    slot.has_buffer = false;
    slot.expects_reply = false;
    free_reply_buffers_.push_back(slot.buffer);
  }
  free_slots_.push_back(number);
  waiting_for_slot_.wake_one();
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

void Client::repost(Slot& slot) {
  if (!slot.has_buffer) return;
  slot.has_buffer = false;
  post_reply_buffer(slot.buffer);
}

void Client::post_reply_buffer(std::uint64_t buffer) {
  if (!broken_) replies_->post(reply_buffer(buffer), buffer);
}

LocalBuffer Client::request_buffer(std::uint32_t slot) const {
  return buffer_memory_.local(slot * request_room_, static_cast<std::uint32_t>(request_room_));
}

LocalBuffer Client::record_buffer(std::uint32_t slot) const {
  return buffer_memory_.local(slots_.size() * request_room_ + slot * record_room_,
                              static_cast<std::uint32_t>(record_room_));
}

LocalBuffer Client::reply_buffer(std::uint64_t index) const {
  return buffer_memory_.local(slots_.size() * (request_room_ + record_room_) + index * reply_room_,
                              static_cast<std::uint32_t>(reply_room_));
}

}  // namespace perdura::systems::write_ahead
