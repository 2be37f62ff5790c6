// Memory of a region for a program that knows nothing of regions: it loads and stores as it does
// with memory of mmap(2), and what it has stored is found by the protection of pages. For real
// applications over DAX, on `shm` and `verbs`; a system that is written for this suite uses View,
// and on `sim`, where an access that nobody tells of does not exist, there is nothing else.
//
//   pmem::TrackedMemory tracked(region, offset, length);
//   application(tracked.memory());                    // any threads, plain stores
//   for (const auto& page : tracked.sync(0, length))  // msync(2)
//     send(page.offset, page.lines);
//
// All pages can be read. The first store to one faults; the handler keeps a copy of the page, opens
// it, and the store is made. sync() closes pages again and compares them with their copies: so the
// unit of what is counted, flushed and handed on is the cache line that differs, not the page that
// was touched, and a line that has its old contents again is none.
//
// Counting. Each run of adjacent words that differ counts as one store of its bytes, made by the
// thread that calls sync() (docs/accounting.md). Stores over stores in between are not seen, nor is
// what was stored but never synced. Loads are not counted.
//
// Why mprotect(2) and not userfaultfd(2): the kernel's write protection covers anonymous memory and
// tmpfs, not DAX files, and wants a privilege or a thread that serves the faults. The price: a
// system call that stores into a closed page, such as read(2), fails with EFAULT; store to the page
// first. And each run of open pages is a mapping of its own, of which a process has 65530
// (vm.max_map_count); when there are no more, a store ends the process and says so.
//
// The memory is the application's: stores through the region, and messages that this process
// places there, are found like the application's own and so counted twice. A device's are not
// found. The handler of SIGSEGV is set when the first object is made; faults that are not its own
// go to the handler that was set before. Who sets one later must hand on what is not theirs, too.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "platform/pmem/region.h"

namespace perdura::pmem {

inline constexpr Bytes kTrackedPage = 4 * KiB;

// A page that was stored to since the last sync.
struct DirtyPage {
  Bytes offset = 0;         // from the start of the tracked memory
  std::uint64_t lines = 0;  // bit i: its i-th cache line differs from what it was
  friend bool operator==(const DirtyPage&, const DirtyPage&) = default;
};
static_assert(kTrackedPage / kCacheLine == 64);

class TrackedMemory {
 public:
  // Whole pages of a region, which outlives this and is not tracked there already. Throws
  // UsageError if they are not, or on `sim`; PlatformError if the kernel cannot protect single
  // pages of this memory, as on a DAX device with an alignment of 2 MiB.
  TrackedMemory(Region& region, Bytes offset, Bytes length);
  // Nobody stores any more. What was not synced stays in memory, uncounted.
  ~TrackedMemory();
  TrackedMemory(const TrackedMemory&) = delete;
  TrackedMemory& operator=(const TrackedMemory&) = delete;

  std::span<std::byte> memory() const { return {base_, length_}; }

  // The pages of a range, which is widened to whole pages, that were stored to since they were last
  // synced, in order. What was stored to them before the call is counted, flushed, and durable when
  // this returns; stores meanwhile are in this sync or in the next. From any thread.
  std::vector<DirtyPage> sync(Bytes offset, Bytes length);

 private:
  friend class FaultHandler;
  // `opening` and `closing` belong to one thread; others wait, which is never for long.
  enum class State : std::uint8_t { clean, opening, dirty, closing };

  void open(Bytes offset);
  bool begin_closing(std::size_t page);
  void close(std::size_t first, std::size_t count, std::vector<DirtyPage>& dirty);
  std::uint64_t count_changes(std::size_t page);

  Region& region_;
  const Bytes offset_;
  const Bytes length_;
  std::byte* const base_;
  std::byte* copies_;  // of dirty pages, as they were
  std::unique_ptr<std::atomic<State>[]> states_;
  std::mutex syncing_;
};

}  // namespace perdura::pmem
