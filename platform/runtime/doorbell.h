// Wakes a sleeping thread. Threads of the same process and, if the doorbell lies in shared memory,
// of other processes may ring it.
//
// No wake-up is lost: the sleeper announces that it is about to sleep and then checks for work once
// more; the ringer publishes its work by a sequentially consistent read-modify-write and then
// checks for a sleeper. At least one of the two sees the other's write. While no thread sleeps,
// ringing costs one load.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "platform/base/units.h"

namespace perdura::runtime {

struct alignas(kCacheLine) Doorbell {
  std::atomic<std::uint32_t> sequence{0};
  std::atomic<std::uint32_t> sleeping{0};
  // A sleeper that also waits for file descriptors is woken through an eventfd of its process
  // instead of the futex. This holds the descriptor + 1, or 0 if there is no eventfd.
  std::atomic<std::uint32_t> event{0};

  void ring() {
    if (sleeping.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      wake();
    }
  }
  void wake();

  // Sleeps until `sequence` differs from `seen`, at most for `timeout` (forever if it is negative).
  void wait(std::uint32_t seen, Nanoseconds timeout);
  // Also returns when one of the descriptors becomes readable. The doorbell must have an eventfd.
  void wait(std::span<const int> descriptors, Nanoseconds timeout);
};

// A doorbell with an eventfd. Only threads of this process can be woken by it.
class EventDoorbell {
 public:
  EventDoorbell();  // throws PlatformError
  ~EventDoorbell();
  EventDoorbell(const EventDoorbell&) = delete;
  EventDoorbell& operator=(const EventDoorbell&) = delete;
  Doorbell& bell() { return bell_; }

 private:
  Doorbell bell_;
};

}  // namespace perdura::runtime
