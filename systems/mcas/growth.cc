#include "systems/mcas/growth.h"

#include "platform/runtime/executor.h"

namespace perdura::systems::mcas {

Task<> Growth::grow(Pool& pool) {
  pool.growing = true;
  under_way_.store(true, std::memory_order_relaxed);
  do {
    steps_.fetch_add(1, std::memory_order_relaxed);
    co_await yield();
  } while (pool.engine->grow_step());
  under_way_.store(false, std::memory_order_relaxed);
  pool.growing = false;
  pool.grown.wake_all();
}

Task<> Growth::until_over(Pool& pool) {
  while (pool.growing) co_await wait(pool.grown);
}

}  // namespace perdura::systems::mcas
