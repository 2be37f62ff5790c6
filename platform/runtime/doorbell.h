// How a thread that sleeps is woken, by threads of its own and of other processes. Lives in shared
// memory if others are to ring it.
//
// No wake-up is lost: the sleeper announces that it sleeps and then looks for work once more; the
// ringer publishes its work, by a sequentially consistent read-modify-write, and then looks whether
// somebody sleeps. One of the two sees the other. Ringing costs a load while nobody sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "platform/base/units.h"

namespace perdura::runtime {

struct alignas(kCacheLine) Doorbell {
  std::atomic<std::uint32_t> sequence{0};
  std::atomic<std::uint32_t> sleeping{0};
  // A sleeper that waits for file descriptors as well is woken by an eventfd of its process instead
  // of the futex: the descriptor + 1, or 0 if there is none.
  std::atomic<std::uint32_t> event{0};

  void ring() {
    if (sleeping.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      wake();
    }
  }
  void wake();

  // Sleeps until the sequence differs from `seen`, at most for `timeout` (forever if negative).
  void wait(std::uint32_t seen, Nanoseconds timeout);
  // The same, or until one of the descriptors can be read; takes an eventfd.
  void wait(std::span<const int> descriptors, Nanoseconds timeout);
};

// A doorbell with an eventfd, for threads of this process only.
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
