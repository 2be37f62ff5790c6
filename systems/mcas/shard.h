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
// No memory of the shard is ever registered for remote access. Instead clients register their
// memory, and the shard READs and WRITEs it; a client that names memory wrongly breaks only its own
// connection.
//
// The shard's parts: ShardSessions has the connections, buffers and handles; KeyRequests,
// PoolRequests, DirectTransfers and Invocations each execute their kinds of requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "systems/mcas/direct_transfers.h"
#include "systems/mcas/growth.h"
#include "systems/mcas/invocations.h"
#include "systems/mcas/job.h"
#include "systems/mcas/key_requests.h"
#include "systems/mcas/pool_requests.h"
#include "systems/mcas/pools.h"
#include "systems/mcas/shard_sessions.h"
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
  void cluster_event(const objects::MemberEvent& event) { invocations_.cluster_event(event); }

  Pools& pools() { return pools_; }
  const Growth& growth() const { return growth_; }

 private:
  // A completion that was taken, until it has been answered or handed over to a task.
  struct Taken {
    Job job;
    bool is_request = false;              // false: broken connection or message; the session ends
    const Engine* prefetching = nullptr;  // the engine that prefetches its key, if one does
    std::uint64_t prefetched = 0;
    std::optional<JobOutcome> outcome{};
  };

  // The requests that have arrived (shard.cc).
  void take(const fabric::ReceiveCompletion& completion);
  void prefetch_keys();
  // Makes all puts so far durable, and answers the requests that were executed but not answered
  // yet.
  void answer_taken();
  void answer(Taken& taken);
  void release_taken();
  // Answers an operation's request; if plugins are to be told of the operation, after that.
  void conclude(const Job& job, const JobOutcome& outcome);

  // Their execution (shard_execution.cc).
  // Executes a request, or starts a task that executes and answers it. Returns false if its pool
  // must grow first; the caller then repeats the call.
  bool execute(Taken& taken);
  bool execute_valid(Taken& taken);
  JobOutcome execute_at_once(const Job& job);
  JobOutcome statistics(const Job& job) const;
  // Closes a pool whose memory has contents that the shard has not written (storage/damage.h) to
  // all requests but those that close its handles. Returns the outcome of such a request.
  JobOutcome damaged(const Job& job, const DamagedPool& damage);
  JobOutcome damaged(const Job& job) const { return sessions_.explained(job, job.pool->damage); }
  // The tasks.
  Keeper keeper_of(const Job& job) { return {shared_from_this(), sessions_, job}; }
  Task<> execute_when_unlocked(Job job, Keeper keeper);
  Task<> transfer(Job job, Keeper keeper);
  Task<> invoke(Job job, Keeper keeper);

  Thread& thread_;
  std::unique_ptr<pmem::Region> memory_;
  Pools pools_;
  Growth growth_;
  objects::ShardStatistics statistics_;
  ShardSessions sessions_;
  KeyRequests keys_;
  DirectTransfers transfers_;
  Invocations invocations_;
  PoolRequests pool_requests_;
  std::vector<Taken> taken_;
};

}  // namespace perdura::systems::mcas
