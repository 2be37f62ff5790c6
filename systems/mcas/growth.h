// How the tables of a shard's pools grow: in steps, so that whoever watches the shard, and its
// other tasks, have their turn between them.
#pragma once

#include <atomic>
#include <cstdint>

#include "systems/mcas/pools.h"

namespace perdura::systems::mcas {

class Growth {
 public:
  // An engine has answered `must_grow`.
  Task<> grow(Pool& pool);
  // To be awaited before a pool is used by a task that has let others run.
  static Task<> until_over(Pool& pool);

  // Steps that have begun, of all pools, and whether one is under way; may be asked for on any
  // thread.
  std::uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  bool under_way() const { return under_way_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<bool> under_way_{false};
};

}  // namespace perdura::systems::mcas
