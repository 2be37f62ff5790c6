// The write meter of an operating-system thread, and how other threads read it.
#pragma once

#include <array>
#include <atomic>

#include "platform/pmem/accounting.h"

namespace perdura::pmem::mapped {

// The counts of one thread as last published by it: one writer, any number of readers. A reader may
// see a publication half done; counts never go backwards.
class PublishedWrites {
 public:
  // Stores the counts if they differ from what was published last; called again and again by a
  // thread that polls.
  void publish(const Writes& writes) {
    const std::uint64_t events = events_of(writes.local_store) + events_of(writes.one_sided);
    if (events == events_) return;
    events_ = events;
    store(writes);
  }
  Writes read() const;

 private:
  static constexpr std::size_t kWords = sizeof(Writes) / sizeof(std::uint64_t);
  // Nothing is counted without one of these.
  static std::uint64_t events_of(const WriteCounts& counts) {
    return counts.stores + counts.flushes + counts.fences + counts.lines;
  }
  void store(const Writes& writes);

  std::uint64_t events_ = 0;
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace perdura::pmem::mapped
