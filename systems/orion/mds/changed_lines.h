// The lines of the MDS' persistent memory that have become durable and that its mirror does not have
// yet.
//
// A volume is written such that a failure may come at any time: whatever was flushed before a fence
// is durable after it, and what comes later is not needed yet. The mirror takes over from what it
// has, so for it the same must hold. Therefore a fence takes the contents of what has been flushed,
// and the mirror gets the contents of one fence after the other. What it has at any time is what the
// MDS' own memory may hold after a failure. A later fence may have more of the same line; then the
// mirror gets the line once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "platform/pmem/region.h"
#include "platform/runtime/sync.h"
#include "services/memory/memory.h"

namespace perdura::systems::orion {

// All functions may be called by any thread of the MDS.
class ChangedLines {
 public:
  // The mirror gets a batch in one step, all or nothing.
  struct Batch {
    std::uint64_t until = 0;  // number of the last change in it
    std::vector<services::MemoryRange> ranges{};
    std::vector<std::byte> contents{};  // those of the ranges, one after the other
  };

  // A batch has at most so many lines.
  explicit ChangedLines(std::uint64_t most) : most_(most) {}

  void flushed(Bytes offset, Bytes length);
  // A fence. `region` has the contents.
  void drained(const pmem::Region& region);
  // The number of the last change; they are numbered by the fences that have found something flushed.
  std::uint64_t changes();
  // The oldest of them. Must not be called if everything has been taken.
  Batch take();

 private:
  using Line = std::array<std::byte, kCacheLine>;
  struct Lines {
    std::uint64_t until = 0;
    std::map<Bytes, Line> lines;  // by offset
  };

  std::uint64_t most_;
  SpinLock lock_;
  std::vector<Bytes> flushed_;  // lines, since the last fence of any thread
  std::uint64_t changes_ = 0;
  std::deque<Lines> waiting_;
};

}  // namespace perdura::systems::orion
