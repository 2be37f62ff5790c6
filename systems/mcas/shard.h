// A shard: one thread that serves one network end-point and is the only one that uses its pools, so
// no memory is shared between threads (MCAS, section 3). It takes the requests that have arrived,
// up to a limit, and executes most of them one after the other, each of them whole. Puts may share
// a fence, behind the last one; whatever is executed from the first of them on is answered after
// it. So a change that is answered is durable, and so is what a get returned, whoever has put it.
// What takes long are tasks of their own, while which it serves others: direct transfers, the
// removal of a pool, works of active data objects (section 4), and requests for a key that such a
// task has locked.
//
// Each session has a reply buffer for each of its `queue_depth` requests in flight, and one request
// buffer more, since a request stays in its buffer while it is executed. The reply to the request
// with the id n is written to reply buffer n, which is free: the client has read the last reply
// that was sent from there before it uses the id again.
//
// Rights are those of handles: a session reaches the pools that it has opened, and no memory of the
// shard is ever registered for access by others. The memory of clients is, and the shard READs and
// WRITEs it; a client that names memory wrongly breaks its own connection, and no other.
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
  // Opens and recovers its memory, or creates it. Throws UsageError if that is damaged or has
  // another shape. Without a launcher there are no active data objects.
  Shard(Thread& thread, const std::string& name, const Parameters& parameters,
        std::shared_ptr<ado::Launcher> launcher = nullptr);

  // Runs until it is destroyed.
  Task<> serve();
  // To be called on the shard's thread: tells all processes of active data objects that run.
  void cluster_event(const objects::MemberEvent& event);

  Pools& pools() { return pools_; }
  const Growth& growth() const { return growth_; }

 private:
  // A pool that a session has open. The handle's low bits are its place in Session::handles.
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
    std::uint32_t tasks = 0;  // and requests taken, which use its buffers and connection
    bool ended = false;       // it is given up when no task is left
    bool is_free() const { return queue_pair == nullptr; }
  };
  // A request, in the buffer in which it has arrived.
  struct Job {
    Session* session = nullptr;
    std::uint64_t buffer = 0;
    ParsedRequest request;
    Pool* pool = nullptr;  // of its handle, if it has one
  };
  // Why a request has failed, and how many bytes of text in the reply buffer explain it.
  struct Failed {
    objects::Error error;
    Bytes reason = 0;

    Failed(objects::Error what, Bytes text = 0) : error(what), reason(text) {}
  };
  // What a request yields: the length of the value in the reply buffer.
  using Outcome = tl::expected<Bytes, Failed>;
  // What has arrived, until it has been answered or a task will answer it.
  struct Taken {
    Job job;
    bool is_request = false;              // otherwise the session ends
    const Engine* prefetching = nullptr;  // which has been told of its key, and has returned this:
    std::uint64_t prefetched = 0;
    std::optional<Outcome> outcome{};
  };
  // Keeps what a task uses, its session and its pool, until it has ended.
  class Keeper;

  // Sessions (shard.cc).
  void accept(fabric::ConnectionRequest& request);
  void take(const fabric::ReceiveCompletion& completion);
  void prefetch_keys();
  // Makes durable what has been put, and answers what has been executed and not been answered.
  void answer_taken();
  void answer(Taken& taken);
  void release_taken();
  void drain();
  void end(Session& session);
  void leave(Session& session);
  void give_up(Session& session);
  void finish(const Job& job, const Outcome& outcome);
  void leave(Pool& pool);

  // A pool's memory says what the shard has not written (storage/damage.h): it is closed to all
  // requests but those that close its handles. Returns what they are answered.
  Outcome damaged(const Job& job, const DamagedPool& damage);
  Outcome damaged(const Job& job) { return explained(job, job.pool->damage); }
  // `failed`, with as much of the reason as the reply has room for.
  Outcome explained(const Job& job, std::string_view reason) const;

  // Requests (shard_requests.cc).
  // Executes a request, or starts a task that does and answers. False: its pool must grow first.
  bool execute(Taken& taken);
  bool execute_valid(Taken& taken);
  Outcome execute_at_once(const Job& job);
  Task<> execute_when_unlocked(Job job, Keeper keeper);
  Task<Outcome> execute_when_unlocked(const Job& job);
  // Nothing: its pool must grow first. If it is not durable yet it clears `drained_`, and what is
  // free in the pool is to be noted.
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
  // Nothing if it goes on as a task.
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
  // `from` is where the `length` bytes begin.
  Task<bool> send(Session& session, const Transfer& to, fabric::LocalBuffer from, Bytes length);

  // Active data objects (shard_invocations.cc).
  // The process of a pool's active data objects.
  PoolProcess& process_of(const Pool& pool) { return *processes_[pool.slot]; }
  // Finishes an operation, perhaps when plugins have been told of it.
  void conclude(const Job& job, const Outcome& outcome);
  Task<> signal(Job job, Outcome outcome, Keeper keeper);
  Task<> invoke(Job job, Keeper keeper);
  Task<Outcome> invoke(const Job& job);
  // Makes what the work is to have; the error if that cannot be.
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
  Welcome limits_;  // what each session is told
  Bytes direct_piece_;
  std::unique_ptr<pmem::Region> buffers_;
  rpc::BufferRow requests_;
  rpc::BufferRow replies_;
  fabric::MemoryRegion pool_memory_;  // for the shard's own operations
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<Session> sessions_;
  std::vector<Taken> taken_;
  bool drained_ = true;  // whether all that was put is durable
  PoolHandle handles_given_ = 0;
  objects::ShardStatistics statistics_;
  Growth growth_;
  PoolProcess::Options process_options_;
  bool signals_ = false;  // plugins are told of other operations
  bool consent_ = false;  // changes of which they are not told, or that they refuse, fail
  Members members_;
  std::vector<std::unique_ptr<PoolProcess>> processes_;  // by slot of the catalog, or none at all
  WaitList pool_left_;                                   // whenever nobody uses a pool any more
};

template <class T>
Shard::Outcome Shard::reply_with(const Job& job, const T& value) {
  rpc::write_message(reply_value(job), value);
  return sizeof value;
}

}  // namespace perdura::systems::mcas
