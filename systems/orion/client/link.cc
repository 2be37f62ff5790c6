#include "systems/orion/client/link.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"
#include "systems/orion/client/timed.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;

namespace {

// The memory of a link: request buffers, reply buffers, scratch buffers.
constexpr Bytes kReplyRoom = (sizeof(Reply) + kCacheLine - 1) / kCacheLine * kCacheLine;
constexpr Bytes kScratch = 4 * KiB;

constexpr Picoseconds kBetweenMemberReads = Microseconds(10);

// For which a connection waits for an MDS that may have failed.
constexpr Picoseconds kShortestWait = Microseconds(200);
constexpr Picoseconds kLongestWait = Milliseconds(200);
constexpr int kAttempts = 50;
constexpr int kTakeovers = 8;  // times for which the MDS must not answer before there is a takeover
constexpr Picoseconds kBetweenAttempts = Microseconds(200);

}  // namespace

MdsLink::MdsLink(Thread& thread, NodeId mds, const Parameters& parameters, std::uint64_t mount,
                 bool published)
    : thread_(thread),
      mds_(mds),
      parameters_(parameters),
      mount_(mount),
      published_(published),
      payload_(thread, fmt::format("orion payload of port {}", thread.endpoint.address().port),
               Access::remote_read) {}

Task<bool> MdsLink::connect() {
  while (is_connecting_) co_await wait(connecting_);
  if (works()) co_return true;
  if (number_ > 0 && parameters_.mds_patience == Picoseconds{}) co_return false;
  is_connecting_ = true;
  co_await establish();
  is_connecting_ = false;
  connecting_.wake_all();
  co_return works();
}

void MdsLink::prepare_memory() {
  memory_ = thread_.node.create_region(
      fmt::format("orion link of port {}", thread_.endpoint.address().port),
      kCalls * (kMessageRoom + kReplyRoom + kScratch), pmem::Medium::dram);
  registered_ = thread_.endpoint.register_memory(*memory_, Access::local);
  for (std::uint32_t i = 0; i < kCalls; ++i) scratch_.push_back(i);
}

// The MDS has no session to give while it has not noticed yet that others are gone, and it may be
// about to come back. An operation that has waited in vain is followed by ones that try only once.
Task<> MdsLink::establish() {
  if (!memory_) prepare_memory();
  const Time begun = thread_.executor.now();
  if (!failing_since_) failing_since_ = begun;
  Picoseconds patience = number_ == 0 ? kAttempts * kBetweenAttempts : parameters_.mds_patience;
  // If the MDS is gone, its mirror refuses connections until it has taken its place.
  if (parameters_.mirror) patience = std::max(patience, kTakeovers * parameters_.takeover_after);
  for (;;) {
    connection_ = co_await try_to_connect();
    if (connection_) ++number_;
    const bool is_first = number_ == 1;
    bool is_ready = connection_ != nullptr;
    if (is_ready) is_ready = co_await read_members();
    if (is_ready && !is_first && connected_again_) is_ready = co_await connected_again_();
    if (is_ready) {
      failing_since_.reset();
      co_return;
    }
    if (thread_.executor.now() - *failing_since_ >= patience) co_return;
    co_await sleep_for(kBetweenAttempts);
  }
}

Task<MdsLink::Connected> MdsLink::try_to_connect() {
  auto connection = std::make_shared<MdsConnection>();
  connection->replies.open(thread_.endpoint, kCalls);
  connection->replies.post_all(
      {registered_, kCalls * kMessageRoom, kReplyRoom, static_cast<std::uint32_t>(kReplyRoom)},
      kCalls);
  connection->calls.open(kCalls);
  // A connection without a mount is not one of its sessions, of which there is one for each port.
  constexpr std::uint64_t kNoPort = ~std::uint64_t{0};
  const std::uint64_t own = thread_.endpoint.address().port;
  id_ = {mount_, mount_ == 0 ? kNoPort : port_of_session(own, attempts_++)};
  const Hello hello{.version = kProtocolVersion, .peer = Peer::session, .id = id_};
  const auto bytes = rpc::bytes_of(hello);
  const auto port =
      static_cast<fabric::Port>(parameters_.first_mds_port() + own % parameters_.network_threads);
  fabric::QueuePairOptions options{connection->replies.queue(), &connection->completions};
  if (parameters_.mirror) {
    options.connection_timeout = parameters_.takeover_after;
  } else if (number_ > 0) {
    options.connection_timeout =
        std::clamp(parameters_.mds_patience / 4, kShortestWait, kLongestWait);
  }
  std::vector<std::byte> data(bytes.begin(), bytes.end());
  fabric::Connection made =
      co_await thread_.endpoint.connect({mds_, port}, options, std::move(data));
  if (made.status != fabric::Status::success) {
    mds_ = parameters_.other_mds(mds_);
    co_return nullptr;
  }
  const auto welcome = rpc::read_message<Welcome>(made.private_data);
  if (welcome.version != kProtocolVersion) co_return nullptr;
  welcome_ = welcome;
  geometry_ = nova::Geometry(welcome_.size, welcome_.inodes, welcome_.log_page_bytes);
  pages_.set(welcome_.groups, welcome_.pages);
  geometry_.owner = &pages_;
  connection->queue_pair = std::move(made.queue_pair);
  co_return connection;
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
    if ((header.flags & kByReference) != 0) arguments.payload_key = payload_.memory().key.value;
    add(rpc::bytes_of(arguments));
    add(std::as_bytes(std::span(request.name.data(), request.name.size())));
    add(std::as_bytes(std::span(request.other_name.data(), request.other_name.size())));
  }
  if ((header.flags & kByReference) != 0) {
    const auto size = static_cast<std::uint32_t>(request.payload.size());
    copy_bytes(payload_.memory().local(0, size).bytes(), request.payload);
  } else {
    add(request.payload);
  }
  header.forces = static_cast<std::uint32_t>(request.forces.size());
  for (const Force& force : request.forces) add(rpc::bytes_of(word_of(force)));
  header.length = static_cast<std::uint32_t>(length);
  rpc::write_message(into, header);
  return header.length;
}

Task<std::optional<Reply>> MdsLink::call(Outgoing request) {
  const bool is_commit = request.header.request == Request::commit;
  ++(is_commit ? counts_.commits : counts_.rpcs);
  return timed(is_commit ? counts_.in_commits : counts_.in_rpcs, exchange(std::move(request)));
}

Task<std::optional<Reply>> MdsLink::exchange(Outgoing request) {
  const bool is_connected = co_await connect();
  if (!is_connected) co_return std::nullopt;
  co_return co_await call_now(std::move(request));
}

Task<std::optional<Reply>> MdsLink::call_now(Outgoing request) {
  const bool refers = request.header.request != Request::commit &&
                      sizeof(MessageHeader) + sizeof(Arguments) + request.name.size() +
                              request.other_name.size() + request.payload.size() +
                              request.forces.size() * kWord >
                          kMessageRoom;
  if (refers) {
    if (request.payload.size() > kLargestPayload) {
      co_return Reply{.error = static_cast<std::int32_t>(std::errc::argument_list_too_long)};
    }
    co_await payload_.turn.acquire();
    request.header.flags |= kByReference;
  }
  const Connected connection = connection_;
  const auto lease = co_await connection->calls.begin();
  const bool is_other = request.connection != 0 && request.connection != number_;
  if (is_other || !connection->works()) {
    if (refers) payload_.turn.release();
    if (!is_other) co_return std::nullopt;
    co_return Reply{.error = kStale};
  }
  const std::uint32_t length = compose(lease.call(), request);
  const fabric::OperationFlags flags{.inlined =
                                         length <= thread_.endpoint.capabilities().max_inline};
  fabric::RdmaOperation send =
      connection->queue_pair->send(request_buffer(lease.call()).first(length), flags);
  connection->calls.expect(lease.call());
  send.post();
  const std::optional<Reply> reply = co_await connection->calls.answer_to(
      lease.call(), connection->completions,
      [&](const fabric::ReceiveCompletion& completion) { take(*connection, completion); });
  if (!co_await send) connection->calls.fail();
  if (refers) payload_.turn.release();
  co_return reply;
}

Task<bool> MdsLink::send(Outgoing request) {
  ++counts_.commits;
  return timed(counts_.in_commits, send_only(std::move(request)));
}

Task<bool> MdsLink::send_only(Outgoing request) {
  const bool is_connected = co_await connect();
  if (!is_connected) co_return false;
  request.header.flags |= kSpeculative;
  const Connected connection = connection_;
  const auto lease = co_await connection->calls.begin();
  if (request.connection != number_) co_return false;
  const std::uint32_t length = compose(lease.call(), request);
  const fabric::OperationFlags flags{.inlined =
                                         length <= thread_.endpoint.capabilities().max_inline};
  fabric::RdmaOperation send =
      connection->queue_pair->send(request_buffer(lease.call()).first(length), flags);
  const fabric::Completion sent = co_await send;
  if (!sent) connection->calls.fail();
  co_return static_cast<bool>(sent);
}

void MdsLink::take(MdsConnection& connection, const fabric::ReceiveCompletion& completion) {
  if (completion.status != fabric::Status::success) return connection.calls.fail();
  // An answer without attributes is shorter.
  Reply reply;
  const std::span<const std::byte> bytes = completion.buffer.bytes();
  std::memcpy(static_cast<void*>(&reply), bytes.data(), std::min(bytes.size(), sizeof reply));
  connection.replies.post(completion.buffer_id);
  if (!connection.calls.deliver(reply.call, reply)) connection.calls.fail();
}

// --- READs

Task<bool> MdsLink::read(Bytes offset, LocalBuffer into) {
  ++counts_.log_reads;
  return timed(counts_.in_log_reads, fetch(offset, into));
}

Task<bool> MdsLink::fetch(Bytes offset, LocalBuffer into) {
  if (!co_await connect()) co_return false;
  const Connected connection = connection_;
  const fabric::RemoteAddress from{fabric::RemoteKey{welcome_.volume_key}, offset};
  const fabric::Completion done = co_await connection->queue_pair->read(into, from);
  if (!done) connection->calls.fail();
  co_return static_cast<bool>(done);
}

Task<bool> MdsLink::read_copy(Bytes offset, std::span<std::byte> into) {
  counts_.log_reads += (into.size() + kScratch - 1) / kScratch;
  return timed(counts_.in_log_reads, fetch_copy(offset, into));
}

Task<bool> MdsLink::fetch_copy(Bytes offset, std::span<std::byte> into) {
  if (!co_await connect()) co_return false;
  co_await scratch_turns_.acquire();
  const std::uint32_t number = scratch_.back();
  scratch_.pop_back();
  bool done = true;
  while (!into.empty() && done) {
    const std::size_t part = std::min<std::size_t>(into.size(), kScratch);
    const LocalBuffer buffer = registered_.local(
        kCalls * (kMessageRoom + kReplyRoom) + number * kScratch, static_cast<std::uint32_t>(part));
    done = co_await fetch(offset, buffer);
    copy_bytes(into.first(part), buffer.bytes());
    into = into.subspan(part);
    offset += part;
  }
  scratch_.push_back(number);
  scratch_turns_.release();
  co_return done;
}

Task<bool> MdsLink::read_words(std::uint64_t inode, InodeWords& words) {
  ++counts_.tail_reads;
  return timed(counts_.in_tail_reads, fetch_words(inode, words, 0, nullptr));
}

Task<bool> MdsLink::read_words(std::uint64_t inode, InodeWords& words, std::uint64_t later,
                               InodeWords& later_words) {
  counts_.tail_reads += 2;
  return timed(counts_.in_tail_reads, fetch_words(inode, words, later, &later_words));
}

fabric::RemoteAddress MdsLink::words_of(std::uint64_t inode) const {
  if (published_) return {fabric::RemoteKey{welcome_.words_key}, inode * sizeof(InodeWords)};
  // The first line of a record begins with the same words.
  static_assert(offsetof(nova::InodeRecord, parent) == offsetof(InodeWords, parent));
  return {fabric::RemoteKey{welcome_.volume_key}, geometry_.inode_offset(inode)};
}

Task<bool> MdsLink::fetch_words(std::uint64_t inode, InodeWords& words, std::uint64_t later,
                                InodeWords* later_words) {
  if (!co_await connect()) co_return false;
  const auto line = std::as_writable_bytes(std::span(&words, 1));
  const auto later_line =
      std::as_writable_bytes(std::span(later_words, later_words == nullptr ? 0 : 1));
  if (!co_await read_lines(words_of(inode), line, words_of(later), later_line)) co_return false;
  const std::uint64_t epoch =
      later_words == nullptr ? words.epoch : std::max(words.epoch, later_words->epoch);
  if (!published_ || epoch <= members_.epoch) co_return true;
  co_return co_await read_members();
}

Task<bool> MdsLink::read_lines(fabric::RemoteAddress from, std::span<std::byte> line,
                               fabric::RemoteAddress later, std::span<std::byte> later_line) {
  co_await scratch_turns_.acquire();
  const std::uint32_t number = scratch_.back();
  scratch_.pop_back();
  const Bytes at = kCalls * (kMessageRoom + kReplyRoom) + number * kScratch;
  const LocalBuffer buffer = registered_.local(at, static_cast<std::uint32_t>(line.size()));
  const LocalBuffer later_buffer =
      registered_.local(at + line.size(), static_cast<std::uint32_t>(later_line.size()));
  const Connected connection = connection_;
  bool is_read = connection != nullptr;
  if (is_read) {
    fabric::RdmaOperation first = connection->queue_pair->read(buffer, from);
    fabric::RdmaOperation second = connection->queue_pair->read(later_buffer, later);
    first.post();
    if (!later_line.empty()) second.post();
    is_read = static_cast<bool>(co_await first);
    if (!later_line.empty() && !static_cast<bool>(co_await second)) is_read = false;
    if (!is_read) connection->calls.fail();
  }
  if (is_read) {
    copy_bytes(line, buffer.bytes());
    copy_bytes(later_line, later_buffer.bytes());
  }
  scratch_.push_back(number);
  scratch_turns_.release();
  co_return is_read;
}

// The MDS publishes them when all stores that it has found know of them, and may be about to.
Task<bool> MdsLink::read_members() {
  for (;;) {
    MembersLine line;
    const fabric::RemoteAddress words{fabric::RemoteKey{welcome_.words_key}, 0};
    const bool is_read =
        co_await read_lines(words, std::as_writable_bytes(std::span(&line, 1)), words, {});
    if (!is_read) co_return false;
    if (line.epoch != 0 && line.epoch == line.same_epoch) {
      if (line.epoch > members_.epoch) members_ = line;
      co_return true;
    }
    co_await sleep_for(kBetweenMemberReads);
  }
}

Task<bool> MdsLink::read_record(std::uint64_t inode, nova::InodeRecord& record) {
  return read_copy(geometry_.inode_offset(inode), std::as_writable_bytes(std::span(&record, 1)));
}

}  // namespace perdura::systems::orion
