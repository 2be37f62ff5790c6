// The sync points of an application's thread, and the checks of a point in each copy of the region.
//
// The region that applications use is followed by a cache line of the driver's own. In the settle
// phase the primary counts in it how often it has settled, and syncs that; a copy has settled when
// it says so, too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/run/point.h"
#include "platform/base/random.h"
#include "services/memory/memory.h"

namespace perdura::bench {

inline const harness::OperationKind kSync{0, "sync"};

// Where the primary counts how often it has settled.
Bytes counter_of(const harness::Point& point);
// The size of the region as the system has it, with that line.
Bytes region_size_of(const harness::Point& point);

// The value of the counter in this copy.
std::uint64_t counted_in(services::MemoryReplica& replica, const harness::Point& point);
// A checksum of all that the copy holds, for MemoryDriver::conclude.
std::uint64_t contents_of(services::MemoryReplica& replica, Bytes size);

// The places that one of a point's threads stores to, in its part of the region.
class SyncPoints {
 public:
  // The threads of one point, and the lives of one thread, are told apart by `stream`.
  SyncPoints(const harness::Point& point, std::uint64_t threads, std::uint64_t index,
             std::uint64_t stream);
  // Stores something else each time, to all bytes that are to be synced next: these.
  std::span<const services::MemoryRange> store(pmem::Region& region);

 private:
  workload::Random random_;
  std::vector<services::MemoryRange> ranges_;
  Bytes sync_size_;
  Bytes alignment_;
  Bytes begin_ = 0;           // of the thread's part
  std::uint64_t places_ = 0;  // in it
  std::vector<std::byte> stored_;
};

}  // namespace perdura::bench
