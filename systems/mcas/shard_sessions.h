// The sessions of a shard: their connections, their message buffers, and the pools that each has
// opened.
//
// Each session has a reply buffer for each of its `queue_depth` requests in flight and one more
// request buffer than that, since a request stays in its buffer while it is executed. The reply to
// the request with id n is written to reply buffer n. That buffer is free: the client uses an id
// again only after it has read the last reply sent from there.
//
// Access rights are tied to handles: a session reaches only the pools that it has opened.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "platform/platform.h"
#include "rpc/messages.h"
#include "rpc/receive_buffers.h"
#include "rpc/sessions.h"
#include "systems/mcas/job.h"
#include "systems/mcas/parameters.h"

namespace perdura::systems::mcas {

class ShardSessions {
 public:
  // Throws UsageError if the device's messages are too short for a request or a reply. Thread and
  // statistics must outlive this.
  ShardSessions(Thread& thread, const std::string& name, const Parameters& parameters,
                objects::ShardStatistics& statistics);

  // The limits that each session is told when it connects.
  const Welcome& limits() const { return limits_; }

  // --- connections -------------------------------------------------------------------------------

  // Accepts a client if there is room for one more session.
  void accept(fabric::ConnectionRequest& request);
  // The requests that arrive over all connections.
  fabric::CompletionQueue& completions() { return completions_; }
  // Null if the connection belongs to no session.
  ShardSession* of(const fabric::QueuePair* queue_pair) { return sessions_.of(queue_pair); }
  // Ends a session: closes its pools, and gives up its connection as soon as nothing uses it.
  void end(ShardSession& session);
  // Must be called when a task has ended, or a request that was taken has been answered.
  void leave(ShardSession& session);
  void leave(Pool& pool);
  // Woken when a pool has no users anymore.
  WaitList& pool_left() { return pool_left_; }

  // --- replies -----------------------------------------------------------------------------------

  fabric::LocalBuffer reply_buffer(const Job& job) const {
    return replies_[std::uint64_t{job.session->number} * limits_.queue_depth +
                    job.request.header.id];
  }
  std::span<std::byte> reply_value(const Job& job) const {
    return reply_buffer(job).bytes().subspan(sizeof(Reply));
  }
  // Lets the cache misses of several replies overlap.
  void prefetch_reply(const Job& job) const { buffers_->prefetch(reply_buffer(job).offset); }
  template <class T>
  JobOutcome reply_with(const Job& job, const T& value) const {
    rpc::write_message(reply_value(job), value);
    return sizeof value;
  }
  // The error `failed`, with as much of the reason as fits into the reply.
  JobOutcome explained(const Job& job, std::string_view reason) const;
  // Sends the reply, and lets the buffer of the request receive another one.
  void finish(const Job& job, const JobOutcome& outcome);

  // --- handles of pools --------------------------------------------------------------------------

  // Null if the session has no such handle.
  static const OpenHandle* find_handle(const ShardSession& session, PoolHandle handle);
  // Returns the index of a closed handle of the session or of a new one; nothing if the session has
  // as many handles as it may have.
  static std::optional<std::size_t> free_handle(ShardSession& session);
  // Opens the pool for the session, with the handle of this index, and returns the handle.
  PoolHandle open(ShardSession& session, std::size_t index, Pool& pool, bool read_only);
  void close(ShardSession& session, PoolHandle handle);

 private:
  void close(OpenHandle& open);
  void give_up(ShardSession& session);
  std::uint32_t request_buffers() const { return limits_.queue_depth + 1; }
  fabric::LocalBuffer request_buffer(const ShardSession& session, std::uint64_t index) const {
    return requests_[std::uint64_t{session.number} * request_buffers() + index];
  }

  Thread& thread_;
  objects::ShardStatistics& statistics_;
  Welcome limits_;
  std::uint32_t max_inline_;
  std::unique_ptr<pmem::Region> buffers_;
  rpc::BufferRow requests_;
  rpc::BufferRow replies_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<ShardSession> sessions_;
  PoolHandle handles_given_ = 0;
  WaitList pool_left_;
};

// Keeps alive what a request's task uses: the shard, the session with its connection and buffers,
// and the pool. Must be created before the task, since the session may have ended before the task
// starts.
class Keeper {
 public:
  Keeper(std::shared_ptr<const void> shard, ShardSessions& sessions, const Job& job)
      : shard_(std::move(shard)), sessions_(&sessions), session_(job.session), pool_(job.pool) {
    ++session_->tasks;
    if (pool_ != nullptr) ++pool_->users;
  }
  Keeper(Keeper&& other) noexcept = default;
  Keeper& operator=(Keeper&&) = delete;
  ~Keeper() {
    if (shard_ == nullptr) return;  // moved from
    if (pool_ != nullptr) sessions_->leave(*pool_);
    sessions_->leave(*session_);
  }

 private:
  std::shared_ptr<const void> shard_;
  ShardSessions* sessions_;
  ShardSession* session_;
  Pool* pool_;
};

}  // namespace perdura::systems::mcas
