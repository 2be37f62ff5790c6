// The memory of one kind of a NUMA node, shared by its regions: one pipe with a latency and a
// bandwidth, or DIMMs (platform/pmem/sim/dimm.h) between which addresses are interleaved.
#pragma once

#include <vector>

#include "platform/pmem/sim/dimm.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/resource.h"

namespace perdura::pmem::sim {

class MemoryController {
 public:
  // `link` leads to it from the cores; null if they are on the same NUMA node.
  explicit MemoryController(const perdura::sim::MemoryProfile& profile,
                            const perdura::sim::NumaProfile* link = nullptr);

  // Allocates a unique range of addresses for each region. A region that is not interleaved lies
  // within one DIMM.
  Bytes allocate(Bytes size, bool one_dimm);

  // The times at which the first and the last of the lines from `address` on arrive, if requested
  // at `at`. `now` is the engine's time, for SharedResource. All lines may be under way at once.
  struct Read {
    Time first;
    Time last;
  };
  Read read(Time now, Time at, Bytes address, Bytes lines);
  // Returns the time at which the memory has accepted lines that are written from `at` on. With
  // DIMMs the lines are issued `gap` apart, since a line that finds its queue full blocks the
  // later ones.
  Time write(Time now, Time at, Bytes address, Bytes lines, Picoseconds gap = {});
  // The time from acceptance until a line is in the persistence domain, as a fence observes it: the
  // write-back of a line that the core owns crosses the link and is acknowledged; a non-temporal
  // store requests ownership first.
  Picoseconds write_latency(bool streaming) const;

  bool has_dimms() const { return !dimms_.empty(); }
  const perdura::sim::MemoryProfile& profile() const { return profile_; }
  const std::vector<Dimm>& dimms() const { return dimms_; }

 private:
  struct Within {
    Dimm* dimm;
    Bytes address;
  };
  Within locate(Bytes address);
  Time read_line(Time now, Time at, Bytes address);
  Picoseconds first_latency(Bytes address);
  Time cross(perdura::sim::SharedResource& direction, Time now, Time at, Bytes bytes);

  const perdura::sim::MemoryProfile& profile_;
  const perdura::sim::NumaProfile* link_;
  perdura::sim::SharedResource reads_;
  perdura::sim::SharedResource writes_;
  perdura::sim::SharedResource link_in_;
  perdura::sim::SharedResource link_out_;
  std::vector<Dimm> dimms_;
  std::vector<std::uint64_t> open_rows_;  // number + 1 of the row that is open; 0: none
  Bytes allocated_ = 0;
};

}  // namespace perdura::pmem::sim
