// Generates the sync points of an application's thread, and reads what a point compares in each
// copy of the region: a counter and a checksum.
//
// The region that applications use is followed by a cache line of the driver's own. In the settle
// phase the primary increments a counter in that line and syncs it. A copy has settled when it
// holds the same count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/run/point.h"
#include "platform/base/random.h"
#include "services/memory/memory.h"

namespace perdura::bench {

inline const harness::OperationKind kSync{0, "sync"};

// The offset of the word in which the primary counts how often it has settled.
Bytes counter_of(const harness::Point& point);
// The size of the region that the system replicates: what applications use, and the driver's line.
Bytes region_size_of(const harness::Point& point);

// The value of the counter in this copy.
std::uint64_t counted_in(services::MemoryReplica& replica, const harness::Point& point);
// A checksum of all that the copy holds, for MemoryDriver::conclude.
std::uint64_t contents_of(services::MemoryReplica& replica, Bytes size);

// The places that one of a point's threads stores to, in its part of the region.
class SyncPoints {
 public:
  // `stream`: which random numbers are drawn. It must differ between the threads of a point, and
  // between the lives of a thread that is started again.
  SyncPoints(const harness::Point& point, std::uint64_t threads, std::uint64_t index,
             std::uint64_t stream);
  // Stores new random bytes to ranges at random places of the thread's part. Returns the ranges,
  // which are to be synced next.
  std::span<const services::MemoryRange> store(pmem::Region& region);

 private:
  Random random_;
  std::vector<services::MemoryRange> ranges_;
  Bytes sync_size_;
  Bytes alignment_;
  Bytes begin_ = 0;           // where the thread's part begins
  std::uint64_t places_ = 0;  // number of places in it
  std::vector<std::byte> stored_;
};

}  // namespace perdura::bench
