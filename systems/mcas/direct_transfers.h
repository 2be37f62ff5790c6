// Direct transfers (MCAS, sections 3.1.1 and 3.1.2). The shard moves the data: it READs from the
// client's memory straight into persistent memory, or WRITEs from there, and then answers by a
// SEND. So no client ever has access to persistent memory, and the shard can keep a key locked
// during a transfer; only put_direct() need not, since its value arrives in unused memory.
//
// The data of a READ may still be in CPU caches when the READ has completed; the shard flushes it
// piece by piece while the next piece arrives.
#pragma once

#include "systems/mcas/growth.h"
#include "systems/mcas/job.h"
#include "systems/mcas/shard_sessions.h"

namespace perdura::systems::mcas {

class DirectTransfers {
 public:
  // Registers the pools' memory for the shard's own operations. All must outlive this.
  DirectTransfers(Thread& thread, Pools& pools, Growth& growth, ShardSessions& sessions,
                  const Parameters& parameters);

  // Executes a direct put or get of a value or of a part of it.
  Task<JobOutcome> execute(const Job& job);

 private:
  Task<JobOutcome> put_direct(const Job& job, Transfer from);
  Task<JobOutcome> get_direct(const Job& job, Transfer to);
  Task<JobOutcome> put_direct_offset(const Job& job, Transfer from);
  Task<bool> fetch(ShardSession& session, const Transfer& from, ByteRange into);
  // `from` is the beginning of the `length` bytes.
  Task<bool> send(ShardSession& session, const Transfer& to, fabric::LocalBuffer from,
                  Bytes length);

  Pools& pools_;
  Growth& growth_;
  ShardSessions& sessions_;
  Bytes piece_;
  fabric::MemoryRegion pool_memory_;
};

}  // namespace perdura::systems::mcas
