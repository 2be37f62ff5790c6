#include "platform/pmem/tracked_memory.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "platform/base/error.h"
#include "platform/pmem/fault_signal.h"

namespace perdura::pmem {
namespace {

// Waits for another thread, which may have no core at the moment. Also works in a signal handler.
class Backoff {
 public:
  void pause() {
    if (++tries_ % 64 == 0) {
      ::sched_yield();
    } else {
      __builtin_ia32_pause();
    }
  }

 private:
  unsigned tries_ = 0;
};

// May be called in a signal handler, so it neither allocates memory nor takes locks.
[[noreturn]] void end_process(std::string_view message) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
  std::abort();
}

void protect(std::byte* begin, Bytes length, int access) {
  if (::mprotect(begin, length, access) == 0) return;
  throw PlatformError(
      fmt::format("cannot change the protection of {} bytes of memory: {}; a DAX device must be "
                  "aligned to 4 KiB (ndctl create-namespace --align 4096)",
                  length, std::strerror(errno)));
}

}  // namespace

// Finds the tracked memory to which a fault belongs. Signal handlers read the table without a lock,
// so its memory is never freed.
class FaultHandler {
 public:
  static void add(TrackedMemory& memory) {
    const std::scoped_lock lock(mutex_);
    serve_faults(serve);
    for (Entry& entry : entries_) {
      if (entry.end.load(std::memory_order_relaxed) != 0) continue;
      entry.memory.store(&memory, std::memory_order_relaxed);
      entry.begin.store(address(memory.base_), std::memory_order_relaxed);
      entry.end.store(address(memory.base_ + memory.length_), std::memory_order_release);
      return;
    }
    throw PlatformError(
        fmt::format("a process tracks at most {} ranges of memory at once", entries_.size()));
  }
  static void remove(const TrackedMemory& memory) {
    const std::scoped_lock lock(mutex_);
    for (Entry& entry : entries_) {
      if (entry.memory.load(std::memory_order_relaxed) != &memory) continue;
      entry.end.store(0, std::memory_order_release);
      entry.memory.store(nullptr, std::memory_order_relaxed);
    }
  }

 private:
  struct Entry {
    std::atomic<std::uintptr_t> begin;
    std::atomic<std::uintptr_t> end;  // 0 if the entry is free
    std::atomic<TrackedMemory*> memory;
  };

  static std::uintptr_t address(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }

  static bool serve(const siginfo_t& fault, unsigned long error) {
    if ((error & kWriteFault) == 0) return false;
    const std::uintptr_t at = address(fault.si_addr);
    for (const Entry& entry : entries_) {
      const std::uintptr_t end = entry.end.load(std::memory_order_acquire);
      const std::uintptr_t begin = entry.begin.load(std::memory_order_relaxed);
      if (at < begin || at >= end) continue;
      entry.memory.load(std::memory_order_relaxed)->open(at - begin);
      return true;
    }
    return false;
  }

  static inline std::mutex mutex_;
  static inline std::array<Entry, 256> entries_{};
};

TrackedMemory::TrackedMemory(Region& region, Bytes offset, Bytes length)
    : region_(region), offset_(offset), length_(length), base_(region.data() + offset) {
  if (region.model() != nullptr) {
    throw UsageError(fmt::format(
        "region {} is modelled and cannot be tracked by pages; use pmem::View", region.name()));
  }
  if (offset > region.size() || length > region.size() - offset || length == 0 ||
      length % kTrackedPage != 0 || reinterpret_cast<std::uintptr_t>(base_) % kTrackedPage != 0) {
    throw UsageError(fmt::format("bytes {}..{} of region {}, which has {}, are not whole pages",
                                 offset, offset + length, region.name(), region.size()));
  }
  void* const copies = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (copies == MAP_FAILED) {
    throw PlatformError(
        fmt::format("no memory for copies of {} bytes: {}", length, std::strerror(errno)));
  }
  copies_ = static_cast<std::byte*>(copies);
  states_ = std::make_unique<std::atomic<State>[]>(length / kTrackedPage);
  try {
    FaultHandler::add(*this);
    try {
      protect(base_, length_, PROT_READ);
      // Checks that the protection of a single page can be changed.
      if (length_ > kTrackedPage) {
        protect(base_, kTrackedPage, PROT_READ | PROT_WRITE);
        protect(base_, kTrackedPage, PROT_READ);
      }
    } catch (const PlatformError&) {
      ::mprotect(base_, length_, PROT_READ | PROT_WRITE);
      FaultHandler::remove(*this);
      throw;
    }
  } catch (const PlatformError&) {
    ::munmap(copies_, length_);
    throw;
  }
}

TrackedMemory::~TrackedMemory() {
  ::mprotect(base_, length_, PROT_READ | PROT_WRITE);
  FaultHandler::remove(*this);
  ::munmap(copies_, length_);
}

// Called in the signal handler of a thread that stores to a protected page.
void TrackedMemory::open(Bytes offset) {
  const std::size_t page = offset / kTrackedPage;
  std::byte* const begin = base_ + page * kTrackedPage;
  for (Backoff wait;; wait.pause()) {
    State state = states_[page].load(std::memory_order_acquire);
    // Another thread has opened the page, perhaps after this thread's fault.
    if (state == State::dirty) return;
    if (state == State::clean &&
        states_[page].compare_exchange_strong(state, State::opening, std::memory_order_acquire)) {
      break;
    }
  }
  std::memcpy(copies_ + page * kTrackedPage, begin, kTrackedPage);
  if (::mprotect(begin, kTrackedPage, PROT_READ | PROT_WRITE) != 0) {
    end_process(
        "perdura: cannot open a page of tracked memory for a store; the process may have as many "
        "mappings as vm.max_map_count allows: sync more often, or raise it\n");
  }
  // This comes last, since whoever sees it may close the page again.
  states_[page].store(State::dirty, std::memory_order_release);
}

bool TrackedMemory::begin_closing(std::size_t page) {
  for (Backoff wait;; wait.pause()) {
    State state = states_[page].load(std::memory_order_acquire);
    if (state == State::clean) return false;
    // A page that is being opened may have been stored to already, so wait until it is open.
    if (state == State::dirty &&
        states_[page].compare_exchange_strong(state, State::closing, std::memory_order_acquire)) {
      return true;
    }
  }
}

std::vector<DirtyPage> TrackedMemory::sync(Bytes offset, Bytes length) {
  if (offset > length_ || length > length_ - offset) {
    throw UsageError(fmt::format("cannot sync bytes {}..{} of tracked memory that has {}", offset,
                                 offset + length, length_));
  }
  if (length == 0) return {};
  const std::size_t end = round_up(offset + length, kTrackedPage) / kTrackedPage;
  std::vector<DirtyPage> dirty;
  const std::scoped_lock lock(syncing_);
  for (std::size_t page = offset / kTrackedPage; page < end;) {
    std::size_t count = 0;
    while (page + count < end && begin_closing(page + count)) ++count;
    if (count != 0) close(page, count, dirty);
    page += count + 1;  // the page behind them was clean
  }
  if (!dirty.empty()) region_.drain();
  return dirty;
}

void TrackedMemory::close(std::size_t first, std::size_t count, std::vector<DirtyPage>& dirty) {
  if (::mprotect(base_ + first * kTrackedPage, count * kTrackedPage, PROT_READ) != 0) {
    end_process("perdura: cannot close pages of tracked memory; see vm.max_map_count\n");
  }
  for (std::size_t page = first; page < first + count; ++page) {
    dirty.push_back({page * kTrackedPage, count_changes(page)});
    states_[page].store(State::clean, std::memory_order_release);
  }
}

// Counts and flushes the words that differ from the copy; returns the lines that they are in.
std::uint64_t TrackedMemory::count_changes(std::size_t page) {
  const std::byte* const now = base_ + page * kTrackedPage;
  const std::byte* const before = copies_ + page * kTrackedPage;
  const auto differs = [&](Bytes at) { return std::memcmp(now + at, before + at, kWord) != 0; };
  std::uint64_t lines = 0;
  for (Bytes at = 0; at < kTrackedPage;) {
    if (!differs(at)) {
      at += kWord;
      continue;
    }
    Bytes end = at;
    for (; end < kTrackedPage && differs(end); end += kWord) {
      lines |= std::uint64_t{1} << (end / kCacheLine);
    }
    if (region_.medium() == Medium::pm) {
      thread_write_meter().bytes(Cause::local_store, {before + at, end - at}, {now + at, end - at});
    }
    at = end;
  }
  for (Bytes line = 0; line < 64; ++line) {
    if ((lines >> line & 1) == 0) continue;
    region_.flush(offset_ + page * kTrackedPage + line * kCacheLine, kCacheLine);
  }
  return lines;
}

}  // namespace perdura::pmem
