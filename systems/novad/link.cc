#include "systems/novad/link.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::novad {

using fabric::LocalBuffer;

Link::Link(Thread& thread, NodeId server, std::uint64_t mount, Purpose purpose)
    : thread_(thread), server_(server), mount_(mount), purpose_(purpose) {}

Task<bool> Link::connected() {
  if (!has_tried_) {
    co_await connecting_.acquire();
    if (!has_tried_) co_await connect();
    has_tried_ = true;
    connecting_.release();
  }
  co_return queue_pair_ != nullptr && queue_pair_->connected() && !calls_.broken();
}

Task<> Link::connect() {
  fabric::Endpoint& endpoint = thread_.endpoint;
  memory_ =
      thread_.node.create_region(fmt::format("novad link of port {}", endpoint.address().port),
                                 2 * kCalls * kMessageRoom, pmem::Medium::dram);
  registered_ = endpoint.register_memory(*memory_, fabric::Access::local);
  replies_.open(endpoint, kCalls);
  replies_.post_all(
      {registered_, kCalls * kMessageRoom, kMessageRoom, static_cast<std::uint32_t>(kMessageRoom)},
      kCalls);
  calls_.open(kCalls);
  const Hello hello{.version = kProtocolVersion, .purpose = purpose_, .mount = mount_};
  const auto bytes = rpc::bytes_of(hello);
  std::vector<std::byte> data(bytes.begin(), bytes.end());
  fabric::Connection made = co_await endpoint.connect(
      {server_, 0}, {replies_.queue(), &completions_, 2 * kCalls}, std::move(data));
  if (made.status != fabric::Status::success) co_return;
  welcome_ = rpc::read_message<Welcome>(made.private_data);
  if (welcome_.version != kProtocolVersion) co_return;
  queue_pair_ = std::move(made.queue_pair);
}

void Link::make_room(rpc::Call call, Bytes size) {
  rooms_[call].grow(thread_, size, fabric::Access::remote_read | fabric::Access::remote_write,
                    "room", ++rooms_made_);
}

Task<std::optional<Answer>> Link::call(Request request, std::uint64_t inode,
                                       std::span<const std::byte> arguments,
                                       std::span<const std::byte> data, Bytes most) {
  if (!co_await connected()) co_return std::nullopt;
  const auto lease = co_await calls_.begin();
  MessageHeader header{.request = request,
                       .call = lease.call(),
                       .inode = inode,
                       .length = arguments.size() + data.size()};
  header.is_in_room = header.length > kMessageRoom - sizeof header ? 1 : 0;
  if (header.is_in_room != 0) make_room(lease.call(), header.length);
  if (most > kMessageRoom - sizeof(ReplyHeader)) make_room(lease.call(), most);
  for (;;) {
    auto answer = co_await exchange(lease.call(), header, arguments, data);
    if (!answer || answer->error != kRoomTooSmall) co_return answer;
    // Its results are the size that the room must have.
    make_room(lease.call(), rpc::read_message<std::uint64_t>(answer->results));
  }
}

Task<std::optional<Answer>> Link::exchange(rpc::Call call, MessageHeader header,
                                           std::span<const std::byte> arguments,
                                           std::span<const std::byte> data) {
  Room& room = rooms_[call];
  header.room_size = room.size();
  header.room_key = room.key();
  LocalBuffer message = request_buffer(call);
  std::span<std::byte> body = message.bytes().subspan(sizeof header);
  if (header.is_in_room != 0) {
    body = room.buffer(header.length).bytes();
    message = message.first(sizeof header);
  } else {
    message = message.first(static_cast<std::uint32_t>(sizeof header + header.length));
  }
  copy_bytes(body.first(arguments.size()), arguments);
  copy_bytes(body.subspan(arguments.size(), data.size()), data);
  charge(Work::copy, header.length);
  rpc::write_message(message.bytes(), header);
  const fabric::OperationFlags flags{.inlined = message.length <=
                                                thread_.endpoint.capabilities().max_inline};
  if (calls_.broken()) co_return std::nullopt;
  fabric::RdmaOperation send = queue_pair_->send(message, flags);
  calls_.expect(call);
  ++count_;
  send.post();
  std::optional<Received> reply = co_await calls_.answer_to(
      call, completions_, [this](const fabric::ReceiveCompletion& each) { take(each); });
  if (!co_await send) calls_.fail();
  if (!reply) co_return std::nullopt;
  Answer answer{.error = reply->header.error,
                .file = reply->header.file,
                .results = std::move(reply->inlined)};
  if (answer.error == kRoomTooSmall) {
    const auto size = rpc::bytes_of(reply->header.length);
    answer.results.assign(size.begin(), size.end());
  } else if (reply->header.is_in_room != 0) {
    const Bytes length = std::min<Bytes>(reply->header.length, room.size());
    const auto results = room.buffer(length).bytes();
    answer.results.assign(results.begin(), results.end());
    charge(Work::copy, length);
  }
  co_return answer;
}

void Link::take(const fabric::ReceiveCompletion& completion) {
  if (completion.status != fabric::Status::success) return calls_.fail();
  const std::span<const std::byte> message = completion.buffer.bytes();
  Received received{.header = rpc::read_message<ReplyHeader>(message)};
  if (message.size() > sizeof(ReplyHeader)) {
    const auto results = message.subspan(sizeof(ReplyHeader));
    received.inlined.assign(results.begin(), results.end());
  }
  replies_.post(completion.buffer_id);
  if (!calls_.deliver(received.header.call, received)) calls_.fail();
}

}  // namespace perdura::systems::novad
