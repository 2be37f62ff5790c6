#include "systems/bucket_hash/client.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "rpc/connect.h"
#include "rpc/messages.h"

namespace perdura::systems::bucket_hash {

using fabric::LocalBuffer;
using fabric::RemoteAddress;
using fabric::RemoteKey;

// --- connecting ----------------------------------------------------------------------------------

Task<> Client::connect(fabric::Address server) {
  replies_.open(thread_.endpoint, most_lanes_);
  fabric::Connection connection = co_await rpc::connect(
      thread_.endpoint, "the store", server, {replies_.queue(), &completions_, most_lanes_},
      rpc::bytes_of(Hello{kProtocolVersion}));
  queue_pair_ = std::move(connection.queue_pair);
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
}

void Client::make_lanes(Bytes read_room) {
  read_room_ = round_up(read_room, kCacheLine);
  calls_.open(std::min(most_lanes_, welcome_.lanes));
  buffers_ = thread_.node.create_region(
      fmt::format("session {} of port {}", welcome_.session, thread_.endpoint.address().port),
      calls_.count() * lane_room(), pmem::Medium::dram);
  buffer_memory_ = thread_.endpoint.register_memory(*buffers_, fabric::Access::local);
  replies_.post_all(
      {buffer_memory_, kRequestRoom + read_room_, lane_room(), std::uint32_t{sizeof(Reply)}},
      calls_.count());
}

// --- operations ----------------------------------------------------------------------------------

Task<kv::Result<void>> Client::request(Request request) {
  const auto lease = co_await calls_.begin();
  if (calls_.broken()) co_return tl::unexpected(kv::Error::disconnected);
  const std::uint32_t lane = lease.call();
  const LocalBuffer buffer = request_buffer(lane);
  rpc::write_message(buffer.bytes(), request);
  fabric::RdmaOperation write = queue_pair_->write_with_immediate(
      buffer,
      RemoteAddress{RemoteKey{welcome_.requests_key},
                    welcome_.requests_offset + lane * kRequestRoom},
      lane);
  calls_.expect(lane);
  write.post();
  const std::optional<ReplyStatus> answer = co_await calls_.answer_to(
      lane, completions_, [this](const fabric::ReceiveCompletion& reply) { take(reply); });
  if (!co_await write) calls_.fail();
  if (!answer) co_return tl::unexpected(kv::Error::disconnected);
  switch (*answer) {
    case ReplyStatus::not_found:
      co_return tl::unexpected(kv::Error::not_found);
    case ReplyStatus::out_of_space:
      co_return tl::unexpected(kv::Error::out_of_space);
    case ReplyStatus::done:
      break;
  }
  co_return kv::Result<void>{};
}

Task<bool> Client::read(std::uint32_t lane, Bytes offset, Bytes length) {
  if (calls_.broken()) co_return false;
  ++counts_.one_sided_reads;
  fabric::RdmaOperation operation =
      queue_pair_->read(read_buffer(lane).slice(0, static_cast<std::uint32_t>(length)),
                        RemoteAddress{RemoteKey{welcome_.index_key}, offset});
  if (!co_await operation) calls_.fail();
  co_return !calls_.broken();
}

Task<std::optional<std::uint64_t>> Reads::read_state() {
  if (!co_await read(0, kWord)) co_return std::nullopt;
  std::uint64_t word = 0;
  std::memcpy(&word, bytes(kWord).data(), kWord);
  co_return word;
}

// Delivers a reply to the call of the lane that it names.
void Client::take(const fabric::ReceiveCompletion& completion) {
  if (completion.status != fabric::Status::success) return calls_.fail();
  const auto reply = rpc::read_message<Reply>(completion.buffer.bytes());
  replies_.post(completion.buffer_id);
  if (!calls_.deliver(reply.lane, reply.status)) calls_.fail();
}

}  // namespace perdura::systems::bucket_hash
