#include "systems/orion/client/link.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;

namespace {

// The memory of a link: request buffers, reply buffers, scratch buffers, and a payload.
constexpr Bytes kReplyRoom = (sizeof(Reply) + kCacheLine - 1) / kCacheLine * kCacheLine;
constexpr Bytes kScratch = 4 * KiB;

constexpr int kAttempts = 50;
constexpr Picoseconds kBetweenAttempts = Microseconds(200);

}  // namespace

MdsLink::MdsLink(Thread& thread, NodeId mds, const Parameters& parameters, std::uint64_t mount,
                 bool published)
    : thread_(thread), mds_(mds), parameters_(parameters), mount_(mount), published_(published) {}

Task<bool> MdsLink::connect() {
  while (state_ == State::connecting) co_await wait(connecting_);
  if (state_ == State::fresh) {
    state_ = State::connecting;
    co_await establish();
    connecting_.wake_all();
  }
  if (state_ == State::connected && (calls_.broken() || !queue_pair_->connected())) {
    state_ = State::gone;
  }
  co_return state_ == State::connected;
}

Task<> MdsLink::establish() {
  const Bytes first_payload = kCalls * (kMessageRoom + kReplyRoom + kScratch);
  memory_ = thread_.node.create_region(
      fmt::format("orion link of port {}", thread_.endpoint.address().port),
      first_payload + kLargestPayload, pmem::Medium::dram);
  registered_ = thread_.endpoint.register_memory(*memory_, 0, first_payload, Access::local);
  payload_ = thread_.endpoint.register_memory(*memory_, first_payload, kLargestPayload,
                                              Access::remote_read);
  replies_.open(thread_.endpoint, kCalls);
  replies_.post_all(
      {registered_, kCalls * kMessageRoom, kReplyRoom, static_cast<std::uint32_t>(kReplyRoom)},
      kCalls);
  for (std::uint32_t i = 0; i < kCalls; ++i) scratch_.push_back(i);
  calls_.open(kCalls);
  // A connection without a mount is not one of its sessions, of which there is one for each port.
  constexpr std::uint64_t kNoPort = ~std::uint64_t{0};
  const SessionId session{mount_, mount_ == 0 ? kNoPort : thread_.endpoint.address().port};
  const Hello hello{.version = kProtocolVersion, .peer = Peer::session, .session = session};
  const auto bytes = rpc::bytes_of(hello);
  const auto port =
      static_cast<fabric::Port>(thread_.endpoint.address().port % parameters_.network_threads);
  const fabric::Address mds{mds_, port};
  const fabric::QueuePairOptions options{replies_.queue(), &completions_};
  fabric::Connection connection;
  // The MDS has no session to give while it has not noticed yet that others are gone.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) co_await sleep_for(kBetweenAttempts);
    std::vector<std::byte> data(bytes.begin(), bytes.end());
    connection = co_await thread_.endpoint.connect(mds, options, std::move(data));
    if (connection.status != fabric::Status::disconnected) break;
  }
  state_ = State::gone;
  if (connection.status != fabric::Status::success) co_return;
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
  if (welcome_.version != kProtocolVersion) co_return;
  geometry_ = nova::Geometry(welcome_.size, welcome_.inodes, welcome_.log_page_bytes);
  pages_.set(welcome_.groups, welcome_.pages);
  geometry_.owner = &pages_;
  queue_pair_ = std::move(connection.queue_pair);
  state_ = State::connected;
}

// --- log commits and RPCs

LocalBuffer MdsLink::request_buffer(rpc::Call call) const {
  return registered_.local(call * kMessageRoom, static_cast<std::uint32_t>(kMessageRoom));
}

std::uint32_t MdsLink::compose(rpc::Call call, const Outgoing& request) {
  const std::span<std::byte> into = request_buffer(call).bytes();
  MessageHeader header = request.header;
  header.call = static_cast<std::uint16_t>(call);
  std::size_t length = sizeof header;
  const auto add = [&](std::span<const std::byte> bytes) {
    copy_bytes(into.subspan(length, bytes.size()), bytes);
    length += bytes.size();
  };
  if (header.request != Request::commit) {
    Arguments arguments = request.arguments;
    arguments.name_length = static_cast<std::uint16_t>(request.name.size());
    arguments.other_length = static_cast<std::uint16_t>(request.other_name.size());
    arguments.payload_length = static_cast<std::uint32_t>(request.payload.size());
    arguments.payload_key = payload_.key.value;
    add(rpc::bytes_of(arguments));
    add(std::as_bytes(std::span(request.name.data(), request.name.size())));
    add(std::as_bytes(std::span(request.other_name.data(), request.other_name.size())));
  }
  if ((header.flags & kByReference) != 0) {
    copy_bytes(std::span(memory_->data() + payload_.offset, request.payload.size()),
               request.payload);
  } else {
    add(request.payload);
  }
  header.length = static_cast<std::uint32_t>(length);
  rpc::write_message(into, header);
  return header.length;
}

Task<std::optional<Reply>> MdsLink::call(Outgoing request) {
  if (!co_await connect()) co_return std::nullopt;
  const bool refers = request.header.request != Request::commit &&
                      sizeof(MessageHeader) + sizeof(Arguments) + request.name.size() +
                              request.other_name.size() + request.payload.size() >
                          kMessageRoom;
  if (refers) {
    if (request.payload.size() > kLargestPayload) {
      co_return Reply{.error = static_cast<std::int32_t>(std::errc::argument_list_too_long)};
    }
    co_await payload_turn_.acquire();
    request.header.flags |= kByReference;
  }
  const auto lease = co_await calls_.begin();
  const std::uint32_t length = compose(lease.call(), request);
  ++(request.header.request == Request::commit ? counts_.commits : counts_.rpcs);
  const fabric::OperationFlags flags{.inlined =
                                         length <= thread_.endpoint.capabilities().max_inline};
  fabric::RdmaOperation send = queue_pair_->send(request_buffer(lease.call()).first(length), flags);
  calls_.expect(lease.call());
  send.post();
  const std::optional<Reply> reply = co_await calls_.answer_to(
      lease.call(), completions_,
      [this](const fabric::ReceiveCompletion& completion) { take(completion); });
  if (!co_await send) calls_.fail();
  if (refers) payload_turn_.release();
  co_return reply;
}

Task<bool> MdsLink::send(Outgoing request) {
  if (!co_await connect()) co_return false;
  request.header.flags |= kSpeculative;
  const auto lease = co_await calls_.begin();
  const std::uint32_t length = compose(lease.call(), request);
  ++counts_.commits;
  const fabric::OperationFlags flags{.inlined =
                                         length <= thread_.endpoint.capabilities().max_inline};
  fabric::RdmaOperation send = queue_pair_->send(request_buffer(lease.call()).first(length), flags);
  const fabric::Completion sent = co_await send;
  if (!sent) calls_.fail();
  co_return static_cast<bool>(sent);
}

void MdsLink::take(const fabric::ReceiveCompletion& completion) {
  if (completion.status != fabric::Status::success) return calls_.fail();
  // An answer without attributes is shorter.
  Reply reply;
  const std::span<const std::byte> bytes = completion.buffer.bytes();
  std::memcpy(static_cast<void*>(&reply), bytes.data(), std::min(bytes.size(), sizeof reply));
  replies_.post(completion.buffer_id);
  if (!calls_.deliver(reply.call, reply)) calls_.fail();
}

// --- READs

Task<bool> MdsLink::read(Bytes offset, LocalBuffer into) {
  if (!co_await connect()) co_return false;
  const fabric::RemoteAddress from{fabric::RemoteKey{welcome_.volume_key}, offset};
  const fabric::Completion done = co_await queue_pair_->read(into, from);
  if (!done) calls_.fail();
  co_return static_cast<bool>(done);
}

Task<bool> MdsLink::read_copy(Bytes offset, std::span<std::byte> into) {
  if (!co_await connect()) co_return false;
  co_await scratch_turns_.acquire();
  const std::uint32_t number = scratch_.back();
  scratch_.pop_back();
  bool done = true;
  while (!into.empty() && done) {
    const std::size_t part = std::min<std::size_t>(into.size(), kScratch);
    const LocalBuffer buffer = registered_.local(
        kCalls * (kMessageRoom + kReplyRoom) + number * kScratch, static_cast<std::uint32_t>(part));
    done = co_await read(offset, buffer);
    copy_bytes(into.first(part), buffer.bytes());
    into = into.subspan(part);
    offset += part;
  }
  scratch_.push_back(number);
  scratch_turns_.release();
  co_return done;
}

Task<bool> MdsLink::read_words(std::uint64_t inode, InodeWords& words) {
  if (!co_await connect()) co_return false;
  ++counts_.tail_reads;
  if (!published_) {
    // The first line of a record begins with the same words.
    static_assert(offsetof(nova::InodeRecord, parent) == offsetof(InodeWords, parent));
    co_return co_await read_copy(geometry_.inode_offset(inode),
                                 std::as_writable_bytes(std::span(&words, 1)));
  }
  co_await scratch_turns_.acquire();
  const std::uint32_t number = scratch_.back();
  scratch_.pop_back();
  const LocalBuffer buffer =
      registered_.local(kCalls * (kMessageRoom + kReplyRoom) + number * kScratch, sizeof words);
  const fabric::RemoteAddress from{fabric::RemoteKey{welcome_.words_key},
                                   inode * sizeof(InodeWords)};
  const fabric::Completion done = co_await queue_pair_->read(buffer, from);
  if (done) words = rpc::read_message<InodeWords>(buffer.bytes());
  if (!done) calls_.fail();
  scratch_.push_back(number);
  scratch_turns_.release();
  co_return static_cast<bool>(done);
}

Task<bool> MdsLink::read_record(std::uint64_t inode, nova::InodeRecord& record) {
  ++counts_.log_reads;
  return read_copy(geometry_.inode_offset(inode), std::as_writable_bytes(std::span(&record, 1)));
}

}  // namespace perdura::systems::orion
