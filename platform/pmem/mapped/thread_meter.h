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
  // Stores the counts if they differ from what was published last.
  void publish(const Writes& writes);
  Writes read() const;

 private:
  static constexpr std::size_t kWords = sizeof(Writes) / sizeof(std::uint64_t);
  Writes last_;  // the writer's copy
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace perdura::pmem::mapped
