// How a thread that sleeps is woken, by threads of its own and of other processes. Lives in shared
// memory if others are to ring it.
//
// No wake-up is lost: the sleeper announces that it sleeps and then looks for work once more; the
// ringer publishes its work, by a sequentially consistent read-modify-write, and then looks whether
// somebody sleeps. One of the two sees the other. Ringing costs a load while nobody sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/units.h"

namespace perdura::runtime {

struct alignas(kCacheLine) Doorbell {
  std::atomic<std::uint32_t> sequence{0};
  std::atomic<std::uint32_t> sleeping{0};

  void ring() {
    if (sleeping.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      wake();
    }
  }
  void wake();

  // Sleeps until the sequence differs from `seen`, at most for `timeout` (forever if negative).
  void wait(std::uint32_t seen, Nanoseconds timeout);
};

}  // namespace perdura::runtime
