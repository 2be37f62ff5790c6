#include "systems/mcas/shard_sessions.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::mcas {

namespace {

// Operations that a session may have queued per request in flight: a reply, two pieces of a
// transfer, and a reply that has arrived but whose completion is not known yet.
constexpr std::uint32_t kMostInLine = 4;

// Limit per session.
constexpr std::size_t kMostHandles = 1024;
constexpr std::uint32_t kIndexBits = 16;
static_assert(kMostHandles <= std::size_t{1} << kIndexBits);

std::size_t index_of(PoolHandle handle) { return handle & ((PoolHandle{1} << kIndexBits) - 1); }

}  // namespace

ShardSessions::ShardSessions(Thread& thread, const std::string& name, const Parameters& parameters,
                             objects::ShardStatistics& statistics)
    : thread_(thread),
      statistics_(statistics),
      limits_{0, parameters.queue_depth, parameters.max_key_size, parameters.max_value_size},
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(parameters.sessions) {
  const Bytes request = limits_.longest_request();
  const Bytes reply = limits_.longest_reply();
  const Bytes message = thread.endpoint.capabilities().max_message;
  if (std::max(request, reply) > message) {
    throw UsageError(fmt::format(
        "shard '{}': a key of {} bytes and a value of {} are more than a message of this device "
        "has, {} bytes; lower max_key_size or the values that travel in messages",
        name, limits_.max_key_size, limits_.longest_value(), message));
  }
  const Bytes request_room = round_up(request, kCacheLine);
  const Bytes reply_room = round_up(reply, kCacheLine);
  const Bytes of_requests = Bytes{parameters.sessions} * request_buffers() * request_room;
  const Bytes of_replies = Bytes{parameters.sessions} * limits_.queue_depth * reply_room;
  buffers_ = thread.node.create_region(fmt::format("{} messages", name), of_requests + of_replies,
                                       pmem::Medium::dram);
  const fabric::MemoryRegion memory =
      thread.endpoint.register_memory(*buffers_, fabric::Access::local);
  requests_ = {memory, 0, request_room, static_cast<std::uint32_t>(request)};
  replies_ = {memory, of_requests, reply_room, static_cast<std::uint32_t>(reply)};
}

// --- connections ---------------------------------------------------------------------------------

void ShardSessions::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  ShardSession* const free = sessions_.find_free();
  if (hello.version != kProtocolVersion || free == nullptr) return request.reject();
  ShardSession& session = *free;
  session.ended = false;
  session.requests = thread_.endpoint.create_receive_queue(request_buffers());
  for (std::uint32_t i = 0; i < request_buffers(); ++i) {
    session.requests->post(request_buffer(session, i), i);
  }
  Welcome welcome = limits_;
  welcome.session = session.number;
  session.queue_pair = request.accept({session.requests.get(), &completions_, limits_.queue_depth},
                                      rpc::bytes_of(welcome));
  sessions_.connected(*session.queue_pair, session);
  ++statistics_.sessions;
}

void ShardSessions::end(ShardSession& session) {
  session.ended = true;
  for (OpenHandle& open : session.handles) close(open);
  session.handles.clear();
  --statistics_.sessions;
}

void ShardSessions::leave(ShardSession& session) {
  if (--session.tasks == 0 && session.ended) give_up(session);
}

void ShardSessions::leave(Pool& pool) {
  if (--pool.users == 0) pool_left_.wake_all();
}

void ShardSessions::give_up(ShardSession& session) {
  sessions_.forget(*session.queue_pair);
  session.queue_pair.reset();
  session.requests.reset();
}

// --- replies -------------------------------------------------------------------------------------

JobOutcome ShardSessions::explained(const Job& job, std::string_view reason) const {
  const std::span<std::byte> reply = reply_value(job);
  const Bytes length = std::min<Bytes>(reason.size(), reply.size());
  copy_bytes(reply.first(length), std::as_bytes(std::span(reason)).first(length));
  return tl::unexpected(Failed(objects::Error::failed, length));
}

void ShardSessions::finish(const Job& job, const JobOutcome& outcome) {
  ShardSession& session = *job.session;
  if (session.ended) return;
  Reply reply{.id = job.request.header.id};
  if (outcome) {
    reply.value_length = static_cast<std::uint32_t>(*outcome);
  } else {
    reply.status = status_of(outcome.error().error);
    reply.value_length = static_cast<std::uint32_t>(outcome.error().reason);
    ++statistics_.failed_requests;
  }
  const fabric::LocalBuffer buffer = reply_buffer(job);
  rpc::write_message(buffer.bytes(), reply);
  rpc::send(*session.queue_pair, buffer.first(static_cast<std::uint32_t>(reply.size())),
            max_inline_);
  // A client that takes no replies would make the shard hold an unbounded number of them.
  if (session.queue_pair->in_line() > std::size_t{kMostInLine} * limits_.queue_depth) {
    return end(session);
  }
  session.requests->post(request_buffer(session, job.buffer), job.buffer);
}

// --- handles of pools ----------------------------------------------------------------------------

std::optional<std::size_t> ShardSessions::free_handle(ShardSession& session) {
  std::vector<OpenHandle>& handles = session.handles;
  const auto closed = std::find_if(handles.begin(), handles.end(),
                                   [](const OpenHandle& open) { return open.handle == kNoPool; });
  if (closed != handles.end()) return static_cast<std::size_t>(closed - handles.begin());
  if (handles.size() == kMostHandles) return std::nullopt;
  handles.emplace_back();
  return handles.size() - 1;
}

PoolHandle ShardSessions::open(ShardSession& session, std::size_t index, Pool& pool,
                               bool read_only) {
  OpenHandle& open = session.handles[index];
  open = {++handles_given_ << kIndexBits | index, &pool, read_only};
  ++pool.users;
  return open.handle;
}

const OpenHandle* ShardSessions::find_handle(const ShardSession& session, PoolHandle handle) {
  const std::size_t index = index_of(handle);
  if (handle == kNoPool || index >= session.handles.size()) return nullptr;
  const OpenHandle& open = session.handles[index];
  return open.handle == handle ? &open : nullptr;
}

void ShardSessions::close(ShardSession& session, PoolHandle handle) {
  close(session.handles[index_of(handle)]);
}

void ShardSessions::close(OpenHandle& open) {
  if (open.handle != kNoPool) leave(*open.pool);
  open = {};
}

}  // namespace perdura::systems::mcas
