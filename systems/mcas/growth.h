// Grows the tables of a shard's pools in steps, between which the shard's other tasks and those who
// observe the shard get a turn.
#pragma once

#include <atomic>
#include <cstdint>

#include "systems/mcas/pools.h"

namespace perdura::systems::mcas {

class Growth {
 public:
  // Must be called when an engine has returned `must_grow`.
  Task<> grow(Pool& pool);
  // Must be awaited before a task uses a pool again after it has let other tasks run.
  static Task<> until_over(Pool& pool);

  // The number of steps begun, over all pools, and true while one is under way. May be called on
  // any thread.
  std::uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  bool under_way() const { return under_way_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<bool> under_way_{false};
};

}  // namespace perdura::systems::mcas
