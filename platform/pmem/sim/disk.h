// A disk or an SSD of a simulated machine, and its files, which are in the machine's page cache.
// Transfers share the disk's bandwidth, one after the other; waiting for written data takes the
// latency of a sync in addition (docs/simulation.md).
#pragma once

#include <set>
#include <vector>

#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/resource.h"

namespace perdura::pmem::sim {

inline constexpr Bytes kPageOfCache = 4 * KiB;

class Disk {
 public:
  explicit Disk(const perdura::sim::DiskProfile& profile) : profile_(profile) {}

  // The time at which `bytes` bytes, which are requested at `at`, have been transferred. `now`: the
  // engine's time.
  Time transfer(Time now, Time at, Bytes bytes);
  const perdura::sim::DiskProfile& profile() const { return profile_; }

 private:
  const perdura::sim::DiskProfile& profile_;
  perdura::sim::SharedResource pipe_;
};

// Tracks which pages of a file are in the cache, and which of them are not on the disk yet.
class CachedFile {
 public:
  // `cached`: true if all of it is in the cache, as for a new file; false if none is, as after a
  // power failure.
  CachedFile(Disk& disk, Bytes size, bool cached)
      : disk_(disk), cached_(size / kPageOfCache + 1, cached) {}

  void changed(Bytes offset, Bytes length);
  // The time at which the pages of a range that are requested at `at` are in the cache.
  Time fetch(Time now, Time at, Bytes offset, Bytes length);
  // Begins to write the changed pages of a range.
  void write_back(Time now, Time at, Bytes offset, Bytes length);
  // The time at which a caller that begins to wait at `at` knows that they are on the disk.
  Time written(Time at) const;
  Picoseconds system_call() const { return disk_.profile().system_call; }

 private:
  Disk& disk_;
  std::vector<bool> cached_;  // by page
  std::set<Bytes> changed_;   // pages
  Time written_{};
};

}  // namespace perdura::pmem::sim
