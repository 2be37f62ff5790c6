#include "platform/pmem/sim/memory_controller.h"

#include <algorithm>

namespace perdura::pmem::sim {

using perdura::sim::transfer_time;

namespace {

// Lies above all addresses that are interleaved over DIMMs.
constexpr Bytes kNotInterleaved = Bytes{1} << 56;

}  // namespace

MemoryController::MemoryController(const perdura::sim::MemoryProfile& profile,
                                   const perdura::sim::NumaProfile* link)
    : profile_(profile), link_(link), open_rows_(profile.rows ? profile.rows->open : 0) {
  const std::uint32_t count = profile.dimms ? profile.dimms->count : 0;
  dimms_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) dimms_.emplace_back(profile);
}

Bytes MemoryController::allocate(Bytes size, bool one_dimm) {
  const Bytes address = allocated_;
  allocated_ += round_up(size, 4 * KiB);
  return one_dimm ? kNotInterleaved + address : address;
}

MemoryController::Within MemoryController::locate(Bytes address) {
  if (address >= kNotInterleaved) return {&dimms_.front(), address};
  const Bytes interleave = profile_.dimms->interleave;
  const Bytes chunk = address / interleave;
  return {&dimms_[chunk % dimms_.size()],
          chunk / dimms_.size() * interleave + address % interleave};
}

Time MemoryController::cross(perdura::sim::SharedResource& direction, Time now, Time at,
                             Bytes bytes) {
  if (link_ == nullptr) return at;
  const Picoseconds transfer = transfer_time(bytes, link_->bandwidth);
  return direction.take(now, at, transfer) + transfer;
}

Time MemoryController::read_line(Time now, Time at, Bytes address) {
  const Within place = locate(address);
  return place.dimm->read(now, at, place.address);
}

Picoseconds MemoryController::first_latency(Bytes address) {
  if (open_rows_.empty()) return profile_.read_latency;
  const std::uint64_t row = address / profile_.rows->size;
  std::uint64_t& open = open_rows_[row % open_rows_.size()];
  const bool hit = open == row + 1;
  open = row + 1;
  return hit ? profile_.rows->hit_latency : profile_.read_latency;
}

MemoryController::Read MemoryController::read(Time now, Time at, Bytes address, Bytes lines) {
  const Picoseconds trip = link_ != nullptr ? link_->round_trip : Picoseconds{};
  Read found{};
  if (has_dimms()) {
    for (Bytes line = 0; line < lines; ++line) {
      const Time there = read_line(now, at, address + line * kCacheLine);
      if (line == 0) found.first = there;
      found.last = std::max(found.last, there);
    }
  } else {
    const Picoseconds transfer = transfer_time(lines * kCacheLine, profile_.read_bandwidth);
    found.first = reads_.take(now, at, transfer) + first_latency(address);
    found.last = found.first + transfer;
  }
  const Time crossed = cross(link_in_, now, found.first, lines * kCacheLine);
  if (link_ != nullptr) found.last = std::max(found.last, crossed);
  return {found.first + trip, found.last + trip};
}

Time MemoryController::write(Time now, Time at, Bytes address, Bytes lines, Picoseconds gap) {
  const Time arrived = cross(link_out_, now, at, lines * kCacheLine);
  if (!has_dimms()) {
    const Picoseconds transfer = transfer_time(lines * kCacheLine, profile_.write_bandwidth);
    return writes_.take(now, arrived, transfer) + transfer;
  }
  Time taken = arrived;
  for (Bytes line = 0; line < lines; ++line) {
    const Within place = locate(address + line * kCacheLine);
    taken = place.dimm->write(now, taken + gap, place.address);
  }
  return taken;
}

Picoseconds MemoryController::write_latency(bool streaming) const {
  const Picoseconds local = streaming ? profile_.streaming_latency : profile_.write_latency;
  if (link_ == nullptr) return local;
  return local + link_->round_trip * (streaming ? 2 : 1);
}

}  // namespace perdura::pmem::sim
