#include "systems/bucket_hash/session.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::systems::bucket_hash {

using fabric::LocalBuffer;
using fabric::RemoteAddress;
using fabric::RemoteKey;
using fabric::Status;

// --- connecting ----------------------------------------------------------------------------------

Task<> Session::connect(fabric::Address server) {
  replies_ = thread_.endpoint.create_receive_queue(most_lanes_);
  const Hello hello{kProtocolVersion};
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  fabric::Connection connection =
      co_await thread_.endpoint.connect(server, {replies_.get(), &completions_, most_lanes_},
                                        std::vector<std::byte>(bytes.begin(), bytes.end()));
  if (connection.status != Status::success) {
    throw PlatformError(fmt::format("cannot connect to the store at node {}, port {}: {}",
                                    server.node, server.port, to_string(connection.status)));
  }
  queue_pair_ = std::move(connection.queue_pair);
  welcome_ = read_message<Welcome>(connection.private_data);
}

void Session::make_lanes(Bytes read_room) {
  read_room_ = round_up(read_room, kCacheLine);
  lanes_ = std::vector<Lane>(std::min(most_lanes_, welcome_.lanes));
  buffers_ = thread_.node.create_region(
      fmt::format("session {} of port {}", welcome_.session, thread_.endpoint.address().port),
      lanes_.size() * lane_room(), pmem::Medium::dram);
  buffer_memory_ = thread_.endpoint.register_memory(*buffers_, fabric::Access::local);
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    free_lanes_.push_back(i);
    replies_->post(reply_buffer(i), i);
  }
}

// --- operations ----------------------------------------------------------------------------------

Task<Result<Bytes>> Session::get(Key key, std::span<std::byte> into) {
  if (!Slot::takes_key(key)) co_return tl::unexpected(Error::not_found);
  const Slot wanted = Slot::of(key);
  const Lease held = co_await lease();
  const std::optional<LookedUp> found = co_await look_up(held.lane(), wanted);
  if (!found) co_return tl::unexpected(Error::disconnected);
  if (!found->item) co_return tl::unexpected(Error::not_found);
  const Value value = found->item->value_bytes();
  if (value.size() > into.size()) co_return tl::unexpected(Error::too_large);
  copy_bytes(into.first(value.size()), value);
  co_return Bytes{value.size()};
}

Task<Result<void>> Session::put(Key key, Value value) {
  if (!Slot::takes(key, value)) co_return tl::unexpected(Error::too_large);
  co_return co_await request({RequestKind::put, Slot::of(key, value)});
}

Task<Result<void>> Session::erase(Key key) {
  if (!Slot::takes_key(key)) co_return tl::unexpected(Error::not_found);
  co_return co_await request({RequestKind::erase, Slot::of(key)});
}

Task<Result<void>> Session::request(Request request) {
  const Lease held = co_await lease();
  if (broken_) co_return tl::unexpected(Error::disconnected);
  const LocalBuffer buffer = request_buffer(held.lane());
  std::memcpy(buffer.bytes().data(), &request, sizeof request);
  fabric::Operation write = queue_pair_->write_with_immediate(
      buffer,
      RemoteAddress{RemoteKey{welcome_.requests_key},
                    welcome_.requests_offset + held.lane() * kRequestRoom},
      held.lane());
  write.post();
  const std::optional<ReplyStatus> answer = co_await answer_to(held.lane());
  if (!co_await write) fail();
  if (!answer) co_return tl::unexpected(Error::disconnected);
  switch (*answer) {
    case ReplyStatus::not_found:
      co_return tl::unexpected(Error::not_found);
    case ReplyStatus::out_of_space:
      co_return tl::unexpected(Error::out_of_space);
    case ReplyStatus::done:
      break;
  }
  co_return Result<void>{};
}

Task<bool> Session::read(std::uint32_t lane, Bytes offset, Bytes length) {
  if (broken_) co_return false;
  ++counts_.one_sided_reads;
  fabric::Operation operation =
      queue_pair_->read(read_buffer(lane).slice(0, static_cast<std::uint32_t>(length)),
                        RemoteAddress{RemoteKey{welcome_.index_key}, offset});
  if (!co_await operation) fail();
  co_return !broken_;
}

Task<std::optional<std::uint64_t>> Session::read_state(std::uint32_t lane) {
  if (!co_await read(lane, 0, kWord)) co_return std::nullopt;
  std::uint64_t word = 0;
  std::memcpy(&word, read_bytes(lane, kWord).data(), kWord);
  co_return word;
}

// --- replies -------------------------------------------------------------------------------------

Task<std::optional<ReplyStatus>> Session::answer_to(std::uint32_t number) {
  Lane& lane = lanes_[number];
  while (!lane.answer && !broken_) {
    if (receiving_) {
      co_await wait(lane.waiting);
      continue;
    }
    receiving_ = true;
    const fabric::ReceiveCompletion completion = co_await completions_.next();
    receiving_ = false;
    deliver(completion);
  }
  // Somebody else takes over.
  if (!receiving_) {
    for (Lane& other : lanes_) {
      if (other.waiting.wake_one()) break;
    }
  }
  co_return std::exchange(lane.answer, std::nullopt);
}

void Session::deliver(const fabric::ReceiveCompletion& completion) {
  if (completion.status != Status::success) return fail();
  const auto reply = read_message<Reply>(completion.buffer.bytes());
  replies_->post(reply_buffer(completion.buffer_id), completion.buffer_id);
  if (reply.lane >= lanes_.size()) return fail();
  lanes_[reply.lane].answer = reply.status;
  lanes_[reply.lane].waiting.wake_one();
}

// The store is gone: every operation under way ends.
void Session::fail() {
  broken_ = true;
  for (Lane& lane : lanes_) lane.waiting.wake_all();
}

// --- lanes ---------------------------------------------------------------------------------------

Task<Session::Lease> Session::lease() {
  while (free_lanes_.empty()) co_await wait(waiting_for_lane_);
  const std::uint32_t lane = free_lanes_.back();
  free_lanes_.pop_back();
  co_return Lease(*this, lane);
}

void Session::give_back(std::uint32_t lane) {
  free_lanes_.push_back(lane);
  waiting_for_lane_.wake_one();
}

}  // namespace perdura::systems::bucket_hash
