// A disk or an SSD of a simulated machine, and its files, which are in the machine's page cache: a
// transfer takes the disk's bandwidth, one behind the other, and waiting for what was written takes
// the latency of a sync in addition (docs/simulation.md).
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

  // When so many bytes, which are asked for at `at`, have been transferred. `now`: the engine's
  // time.
  Time transfer(Time now, Time at, Bytes bytes);
  const perdura::sim::DiskProfile& profile() const { return profile_; }

 private:
  const perdura::sim::DiskProfile& profile_;
  perdura::sim::SharedResource pipe_;
};

// Which pages of a file are in the cache, and which of them the disk lacks.
class CachedFile {
 public:
  // `cached`: all of it, as of a new file; else nothing, as behind a power failure.
  CachedFile(Disk& disk, Bytes size, bool cached)
      : disk_(disk), cached_(size / kPageOfCache + 1, cached) {}

  void changed(Bytes offset, Bytes length);
  // When the pages of a range that somebody wants at `at` are in the cache.
  Time fetch(Time now, Time at, Bytes offset, Bytes length);
  // Begins to write what has changed in these pages.
  void write_back(Time now, Time at, Bytes offset, Bytes length);
  // When the disk has all of that, for somebody who begins to wait at `at`.
  Time written(Time at) const;
  Picoseconds system_call() const { return disk_.profile().system_call; }

 private:
  Disk& disk_;
  std::vector<bool> cached_;  // by page
  std::set<Bytes> changed_;   // pages
  Time written_{};
};

}  // namespace perdura::pmem::sim
