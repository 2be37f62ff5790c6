#include "platform/pmem/sim/dimm.h"

#include <algorithm>

namespace perdura::pmem::sim {

using perdura::sim::transfer_time;

namespace {

std::uint8_t part_of(Bytes address) {
  return static_cast<std::uint8_t>(1U << (address % kMediaLine / kCacheLine));
}

// A hash: neighboring numbers, and numbers a power of two apart, have unrelated results.
std::uint64_t scattered(std::uint64_t number) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  number *= kFactor;
  number ^= number >> 32;
  return number * kFactor >> 40;
}

}  // namespace

Dimm::Dimm(const perdura::sim::MemoryProfile& memory)
    : memory_(memory),
      media_read_(transfer_time(kMediaLine * memory.dimms->count, memory.read_bandwidth)),
      media_write_(transfer_time(kMediaLine * memory.dimms->count, memory.write_bandwidth)),
      port_time_(transfer_time(kCacheLine, memory.dimms->port_bandwidth)),
      buffer_(memory.dimms->buffer_lines),
      left_(memory.dimms->write_queue) {}

// Consecutive lines go to consecutive sets, so that any region as large as the buffer fits into it.
// Each stretch of the buffer's size begins at an arbitrary set, as if addresses were remapped for
// wear leveling.
Dimm::BufferLine* Dimm::set_of(std::uint64_t line) {
  const std::size_t ways = memory_.dimms->buffer_ways;
  const std::size_t sets = buffer_.size() / ways;
  return &buffer_[(line + scattered(line / buffer_.size())) % sets * ways];
}

Dimm::BufferLine* Dimm::find(std::uint64_t line) {
  BufferLine* const set = set_of(line);
  BufferLine* const end = set + memory_.dimms->buffer_ways;
  BufferLine* const found = std::find_if(
      set, end, [line](const BufferLine& buffered) { return buffered.line == line + 1; });
  return found == end ? nullptr : found;
}

Dimm::BufferLine& Dimm::oldest(std::uint64_t line) {
  BufferLine* const set = set_of(line);
  return *std::min_element(
      set, set + memory_.dimms->buffer_ways,
      [](const BufferLine& a, const BufferLine& b) { return a.used < b.used; });
}

Time Dimm::evict(Time now, Time at, BufferLine& buffered) {
  Time done = at;
  if (buffered.written) {
    const bool whole = buffered.held == kWhole;
    const Picoseconds busy = media_write_ + (whole ? Picoseconds{} : media_read_);
    done = media_.take(now, at, busy) + busy;
    ++media_writes_;
    if (!whole) ++media_reads_;
  }
  buffered = {};
  return done;
}

Time Dimm::read(Time now, Time at, Bytes address) {
  const std::uint64_t line = address / kMediaLine;
  BufferLine* buffered = find(line);
  if (buffered == nullptr || (buffered->held & part_of(address)) == 0) {
    const Time begin = media_.take(now, at, media_read_);
    ++media_reads_;
    if (buffered == nullptr) {
      // A read does not wait until the line that it evicts has been written.
      buffered = &oldest(line);
      evict(now, begin + media_read_, *buffered);
      buffered->line = line + 1;
    }
    buffered->held = kWhole;
    buffered->filled = begin + memory_.read_latency - memory_.dimms->buffer_read_latency;
  }
  buffered->used = ++uses_;
  return port_.take(now, std::max(at, buffered->filled), port_time_) +
         memory_.dimms->buffer_read_latency;
}

Time Dimm::write(Time now, Time at, Bytes address) {
  const std::uint64_t line = address / kMediaLine;
  Time& slot = left_[next_left_];
  next_left_ = (next_left_ + 1) % left_.size();
  const Time queued = std::max(at, slot);
  Time leaves = std::max(queued, last_left_);
  BufferLine* buffered = find(line);
  if (buffered == nullptr) {
    buffered = &oldest(line);
    // An evicted line waits in a register until the media have taken the previously evicted one.
    leaves = std::max(leaves, evicted_);
    evicted_ = evict(now, leaves, *buffered);
    buffered->line = line + 1;
  }
  buffered->held |= part_of(address);
  buffered->written = true;
  buffered->used = ++uses_;
  leaves = port_.take(now, leaves, port_time_) + port_time_;
  slot = last_left_ = leaves;
  return queued;
}

}  // namespace perdura::pmem::sim
