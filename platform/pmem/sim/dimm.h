// A DIMM of 3D XPoint, as "Building Distributed Systems with Non-Volatile Main Memories and RDMA
// Networks" describes it (section 2.2.1). From the CPU to the media there are: the write-pending
// queue of the memory controller; a small buffer (XPBuffer) that merges writes and keeps what was
// read; and the media, which read and write lines of 256 bytes.
//
// A line of 64 bytes that is read comes from the buffer, or the media read its media line into the
// buffer first. A line that is written waits in the queue until the buffer has a place for its
// media line; the place is that of the least recently used line, which is written to the media
// first if it is dirty. If only a part of a dirty line was written, the media first read the whole
// line (read-modify-write).
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/resource.h"

namespace perdura::pmem::sim {

class Dimm {
 public:
  explicit Dimm(const perdura::sim::MemoryProfile& memory);

  // Returns the time at which the CPU has the line at `address` (within the DIMM) that it requests
  // at `at`. `now` is the engine's time, for SharedResource.
  Time read(Time now, Time at, Bytes address);
  // Returns the time at which the write-pending queue accepts a line that is written at `at`. Lines
  // enter the queue in the order of the calls.
  Time write(Time now, Time at, Bytes address);

  // Accesses of the media, in media lines.
  std::uint64_t media_reads() const { return media_reads_; }
  std::uint64_t media_writes() const { return media_writes_; }

 private:
  static constexpr std::uint8_t kWhole = 0b1111;  // all four lines of a media line

  struct BufferLine {
    std::uint64_t line = 0;  // address / kMediaLine + 1; 0 is free
    std::uint64_t used = 0;
    std::uint8_t held = 0;  // the ones of its four lines that are present
    bool written = false;
    Time filled{};  // when the media had delivered it
  };
  BufferLine* find(std::uint64_t line);
  BufferLine& oldest(std::uint64_t line);
  BufferLine* set_of(std::uint64_t line);
  // Evicts a line; returns the time at which the media are done with it.
  Time evict(Time now, Time at, BufferLine& buffered);

  const perdura::sim::MemoryProfile& memory_;
  Picoseconds media_read_;
  Picoseconds media_write_;
  Picoseconds port_time_;
  perdura::sim::SharedResource media_;
  perdura::sim::SharedResource port_;
  std::vector<BufferLine> buffer_;  // the lines of a set are adjacent
  std::vector<Time> left_;          // when the last lines left the queue, as a ring
  std::size_t next_left_ = 0;
  Time last_left_{};
  Time evicted_{};  // when the media have written the last line that a write evicted
  std::uint64_t uses_ = 0;
  std::uint64_t media_reads_ = 0;
  std::uint64_t media_writes_ = 0;
};

}  // namespace perdura::pmem::sim
