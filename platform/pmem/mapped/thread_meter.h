// Publishes the write meter of an operating-system thread to other threads.
#pragma once

#include <array>
#include <atomic>

#include "platform/pmem/accounting.h"

namespace perdura::pmem::mapped {

// The counts that one thread has last published: one writer, any number of readers. A read is not
// atomic (it may see part of a publication), but each count is monotonic.
class PublishedWrites {
 public:
  // Stores the counts if they differ from those last published. A polling thread calls this in
  // every turn of its loop.
  void publish(const Writes& writes) {
    const std::uint64_t events = events_of(writes.local_store) + events_of(writes.one_sided);
    if (events == events_) return;
    events_ = events;
    store(writes);
  }
  Writes read() const;

 private:
  static constexpr std::size_t kWords = sizeof(Writes) / sizeof(std::uint64_t);
  // Every counted write increases at least one of these counters.
  static std::uint64_t events_of(const WriteCounts& counts) {
    return counts.stores + counts.flushes + counts.fences + counts.lines;
  }
  void store(const Writes& writes);

  std::uint64_t events_ = 0;
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace perdura::pmem::mapped
