// Requests for pools as a whole: to create, open, close, delete and configure them.
#pragma once

#include "systems/mcas/invocations.h"
#include "systems/mcas/job.h"
#include "systems/mcas/shard_sessions.h"

namespace perdura::systems::mcas {

class PoolRequests {
 public:
  // All must outlive this.
  PoolRequests(Pools& pools, ShardSessions& sessions, Invocations& invocations)
      : pools_(pools), sessions_(sessions), invocations_(invocations) {}

  // Opens a pool, or creates it, as the request says.
  JobOutcome open(const Job& job);
  JobOutcome close(const Job& job);
  // Deletes a pool and answers.
  Task<> remove(Job job, Keeper keeper);
  JobOutcome attributes(const Job& job) const;
  JobOutcome configure(const Job& job);

 private:
  Pools& pools_;
  ShardSessions& sessions_;
  Invocations& invocations_;
};

}  // namespace perdura::systems::mcas
