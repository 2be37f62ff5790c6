// A shard: one thread that serves one network end-point and is the only one that uses its pools, so
// no memory is shared between threads (MCAS, section 3). It takes the requests that have arrived,
// up to a limit, and executes most of them one after the other, each without interruption. The puts
// among them may share a single fence, issued after the last one; everything executed from the
// first of these puts on is answered only after that fence. So a change that is answered is
// durable, and so is a value that a get returned, no matter which client put it. Long-running work
// runs as tasks while the shard keeps serving other requests: direct transfers, the deletion of a
// pool, invocations of active data objects (section 4), and requests for a key that such a task has
// locked.
//
// Each session has a reply buffer for each of its `queue_depth` requests in flight and one more
// request buffer than that, since a request stays in its buffer while it is executed. The reply to
// the request with id n is written to reply buffer n. That buffer is free: the client uses an id
// again only after it has read the last reply sent from there.
//
// Access rights are tied to handles: a session reaches only the pools that it has opened, and no
// memory of the shard is ever registered for remote access. Instead clients register their memory,
// and the shard READs and WRITEs it; a client that names memory wrongly breaks only its own
// connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/receive_buffers.h"
#include "rpc/sessions.h"
#include "systems/mcas/growth.h"
#include "systems/mcas/parsed_request.h"
#include "systems/mcas/pool_process.h"
#include "systems/mcas/pools.h"
#include "systems/mcas/storage/damage.h"

namespace perdura::systems::mcas {

class Shard : public std::enable_shared_from_this<Shard> {
 public:
  // Opens and recovers the shard's memory, or creates it. Throws UsageError if the memory is
  // damaged or has another shape. Without a launcher there are no active data objects.
  Shard(Thread& thread, const std::string& name, const Parameters& parameters,
        std::shared_ptr<ado::Launcher> launcher = nullptr);

  // Serves until the task is destroyed.
  Task<> serve();
  // Reports the event to all running processes of active data objects. Must be called on the
  // shard's thread.
  void cluster_event(const objects::MemberEvent& event);

  Pools& pools() { return pools_; }
  const Growth& growth() const { return growth_; }

 private:
  // A pool that a session has open. The handle's low bits are its index in Session::handles.
  struct OpenPool {
    PoolHandle handle = kNoPool;  // kNoPool: closed
    Pool* pool = nullptr;
    bool read_only = false;
  };
  struct Session {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::ReceiveQueue> requests;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::vector<OpenPool> handles;
    std::uint32_t tasks = 0;  // tasks, and requests taken, that use its buffers and connection
    bool ended = false;       // given up as soon as `tasks` is 0
    bool is_free() const { return queue_pair == nullptr; }
  };
  // A request, in the buffer in which it arrived.
  struct Job {
    Session* session = nullptr;
    std::uint64_t buffer = 0;
    ParsedRequest request;
    Pool* pool = nullptr;  // the pool of its handle, if it has one
  };
  // The reason of a failure: an error and the length of the text in the reply buffer that explains
  // it.
  struct Failed {
    objects::Error error;
    Bytes reason = 0;

    Failed(objects::Error what, Bytes text = 0) : error(what), reason(text) {}
  };
  // The result of a request: the length of the value in the reply buffer, or a failure.
  using Outcome = tl::expected<Bytes, Failed>;
  // A completion that was taken, until it has been answered or handed over to a task.
  struct Taken {
    Job job;
    bool is_request = false;              // false: broken connection or message; the session ends
    const Engine* prefetching = nullptr;  // the engine that prefetches its key, if one does
    std::uint64_t prefetched = 0;
    std::optional<Outcome> outcome{};
  };
  // Keeps the session and the pool of a task alive until the task has ended.
  class Keeper;

  // Sessions (shard.cc).
  void accept(fabric::ConnectionRequest& request);
  void take(const fabric::ReceiveCompletion& completion);
  void prefetch_keys();
  // Makes all puts so far durable, and answers the requests that were executed but not answered
  // yet.
  void answer_taken();
  void answer(Taken& taken);
  void release_taken();
  void drain();
  void end(Session& session);
  void leave(Session& session);
  void give_up(Session& session);
  void finish(const Job& job, const Outcome& outcome);
  void leave(Pool& pool);

  // Closes a pool whose memory has contents that the shard has not written (storage/damage.h) to
  // all requests but those that close its handles. Returns the outcome of such a request.
  Outcome damaged(const Job& job, const DamagedPool& damage);
  Outcome damaged(const Job& job) { return explained(job, job.pool->damage); }
  // The error `failed`, with as much of the reason as fits into the reply.
  Outcome explained(const Job& job, std::string_view reason) const;

  // Requests (shard_requests.cc).
  // Executes a request, or starts a task that executes and answers it. Returns false if its pool
  // must grow first; the caller then repeats the call.
  bool execute(Taken& taken);
  bool execute_valid(Taken& taken);
  Outcome execute_at_once(const Job& job);
  Task<> execute_when_unlocked(Job job, Keeper keeper);
  Task<Outcome> execute_when_unlocked(const Job& job);
  // Returns nothing if the pool must grow first. A put that is flushed but not durable yet clears
  // `drained_`; its caller must drain and then call note_space() of the pool.
  std::optional<Outcome> put_at_once(const Job& job, Value value);
  Task<Outcome> put(const Job& job, Value value);
  static Outcome outcome_of(Pool& pool, Key key, PutOutcome outcome);
  Outcome get(const Job& job);
  Outcome erase(const Job& job);
  Outcome key_attributes(const Job& job);
  Outcome open_pool(const Job& job);
  Outcome close_pool(const Job& job);
  Task<> delete_pool(Job job, Keeper keeper);
  Outcome pool_attributes(const Job& job);
  Outcome configure_pool(const Job& job);
  // Returns nothing if the search continues as a task.
  std::optional<Outcome> find(const Job& job);
  Task<> find_further(Job job, std::uint64_t position, Keeper keeper);
  Outcome found(const Job& job, const index::FindResult& result);
  Outcome statistics(const Job& job);
  const OpenPool* find_handle(const Session& session, PoolHandle handle) const;
  static std::size_t free_handle(Session& session);
  Outcome add_handle(const Job& job, std::size_t number, Pool& pool);
  void close(OpenPool& open);
  template <class T>
  Outcome reply_with(const Job& job, const T& value);

  // Direct transfers (shard_transfers.cc).
  Task<> transfer(Job job, Keeper keeper);
  Task<Outcome> transfer(const Job& job);
  Task<Outcome> put_direct(const Job& job, Transfer from);
  Task<Outcome> get_direct(const Job& job, Transfer to);
  Task<Outcome> put_direct_offset(const Job& job, Transfer from);
  Task<bool> fetch(Session& session, const Transfer& from, Place into);
  // `from` is the beginning of the `length` bytes.
  Task<bool> send(Session& session, const Transfer& to, fabric::LocalBuffer from, Bytes length);

  // Active data objects (shard_invocations.cc).
  // The process of a pool's active data objects.
  PoolProcess& process_of(const Pool& pool) { return *processes_[pool.slot]; }
  // Answers an operation's request; if plugins are to be told of the operation, after that.
  void conclude(const Job& job, const Outcome& outcome);
  Task<> signal(Job job, Outcome outcome, Keeper keeper);
  Task<> invoke(Job job, Keeper keeper);
  Task<Outcome> invoke(const Job& job);
  // Creates the value and the detached memory that the invocation needs. Returns the error if that
  // fails.
  Task<std::optional<objects::Error>> prepare(const Job& job, PoolCallbacks& pool,
                                              ado::WorkMessage& order);
  Outcome answered(const Job& job, const ado::CompletionMessage& completion);
  Outcome failed(const Job& job, const ado::CompletionMessage& completion) const;
  static Task<> end_idle_processes(std::shared_ptr<Shard> self);

  std::uint32_t request_buffers() const { return limits_.queue_depth + 1; }
  fabric::LocalBuffer request_buffer(const Session& session, std::uint64_t index) const {
    return requests_[std::uint64_t{session.number} * request_buffers() + index];
  }
  fabric::LocalBuffer reply_buffer(const Job& job) const {
    return replies_[std::uint64_t{job.session->number} * limits_.queue_depth +
                    job.request.header.id];
  }
  std::span<std::byte> reply_value(const Job& job) const {
    return reply_buffer(job).bytes().subspan(sizeof(Reply));
  }

  Thread& thread_;
  std::unique_ptr<pmem::Region> memory_;
  Pools pools_;
  Welcome limits_;  // sent to each session when it connects
  Bytes direct_piece_;
  std::unique_ptr<pmem::Region> buffers_;
  rpc::BufferRow requests_;
  rpc::BufferRow replies_;
  fabric::MemoryRegion pool_memory_;  // the registration for the shard's own operations
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<Session> sessions_;
  std::vector<Taken> taken_;
  bool drained_ = true;  // true if everything that was put is durable
  PoolHandle handles_given_ = 0;
  objects::ShardStatistics statistics_;
  Growth growth_;
  PoolProcess::Options process_options_;
  bool signals_ = false;  // plugins are told of gets, puts and erases, too
  bool consent_ = false;  // a change fails if plugins cannot be told of it or refuse it
  Members members_;
  std::vector<std::unique_ptr<PoolProcess>>
      processes_;       // the process of each catalog slot; empty without plugins
  WaitList pool_left_;  // woken when a pool has no users any more
};

template <class T>
Shard::Outcome Shard::reply_with(const Job& job, const T& value) {
  rpc::write_message(reply_value(job), value);
  return sizeof value;
}

}  // namespace perdura::systems::mcas
