#include "platform/runtime/doorbell.h"

#include <fmt/core.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <vector>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::runtime {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

timespec to_timespec(Nanoseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {seconds.count(), (duration - seconds).count()};
}

}  // namespace

void Doorbell::wake() {
  sequence.fetch_add(1, std::memory_order_seq_cst);
  if (const std::uint32_t descriptor = event.load(std::memory_order_relaxed); descriptor != 0) {
    ::eventfd_write(static_cast<int>(descriptor - 1), 1);
    return;
  }
  futex(sequence, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr);
}

void Doorbell::wait(std::uint32_t seen, Nanoseconds timeout) {
  if (event.load(std::memory_order_relaxed) != 0) {
    wait(std::span<const int>(), timeout);
    return;
  }
  const timespec relative = to_timespec(timeout);
  futex(sequence, FUTEX_WAIT, seen, timeout < Nanoseconds::zero() ? nullptr : &relative);
}

void Doorbell::wait(std::span<const int> descriptors, Nanoseconds timeout) {
  thread_local std::vector<pollfd> polled;
  const int own = static_cast<int>(event.load(std::memory_order_relaxed)) - 1;
  polled.assign(1, {own, POLLIN, 0});
  for (const int descriptor : descriptors) polled.push_back({descriptor, POLLIN, 0});
  const timespec relative = to_timespec(timeout);
  ::ppoll(polled.data(), polled.size(), timeout < Nanoseconds::zero() ? nullptr : &relative,
          nullptr);
  eventfd_t rung;
  if ((polled.front().revents & POLLIN) != 0) ::eventfd_read(own, &rung);
}

EventDoorbell::EventDoorbell() {
  // File makes sure that the descriptor is none of 0, 1 and 2.
  const int descriptor = pmem::mapped::File(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)).release();
  if (descriptor < 0) {
    throw PlatformError(fmt::format("cannot make an eventfd: {}", pmem::mapped::error_text(errno)));
  }
  bell_.event.store(static_cast<std::uint32_t>(descriptor) + 1, std::memory_order_relaxed);
}

EventDoorbell::~EventDoorbell() {
  ::close(static_cast<int>(bell_.event.load(std::memory_order_relaxed)) - 1);
}

}  // namespace perdura::runtime
