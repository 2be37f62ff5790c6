// The bytes of a registration of extents that operations have changed and that no commit has made
// persistent yet (QueuePair::commit), as ranges of the registration. The platforms that carry out
// commits themselves keep them for the device.
//
// A device has little memory, so there are at most kDirtyRanges of them. Ranges that touch become
// one. One that would be too many is joined with the nearest one, and the bytes between the two
// then count as changed: a commit writes them back for nothing, which takes time and does no harm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "platform/base/units.h"

namespace perdura::fabric {

inline constexpr std::size_t kDirtyRanges = 15;

struct DirtyRange {
  Bytes begin = 0;
  Bytes end = 0;
  // From when on all of it is in memory; for devices that accept data before they have placed it.
  Time placed{};
};

constexpr DirtyRange joined(const DirtyRange& a, const DirtyRange& b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end), std::max(a.placed, b.placed)};
}

// The number of bytes between two ranges; 0 if they touch or overlap.
constexpr Bytes gap_between(const DirtyRange& a, const DirtyRange& b) {
  if (a.end < b.begin) return b.begin - a.end;
  return b.end < a.begin ? a.begin - b.end : 0;
}

// Adds a range to `Ranges`, which has size(), at(i), put(i, range), add_last(range) and
// drop_last(). Each single change leaves all that was dirty in them: another process that takes
// over after this one has died in between misses nothing.
template <class Ranges>
void add_dirty(Ranges& ranges, const DirtyRange& range) {
  if (range.begin == range.end) return;
  std::size_t nearest = 0;
  Bytes least = std::numeric_limits<Bytes>::max();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Bytes gap = gap_between(ranges.at(i), range);
    if (gap >= least) continue;
    nearest = i;
    least = gap;
  }
  if (least != 0 && ranges.size() < kDirtyRanges) {
    ranges.add_last(range);
    return;
  }
  ranges.put(nearest, joined(ranges.at(nearest), range));
  // The range has grown, and may touch others now.
  for (std::size_t i = 0; i < ranges.size();) {
    if (i == nearest || gap_between(ranges.at(i), ranges.at(nearest)) != 0) {
      ++i;
      continue;
    }
    ranges.put(nearest, joined(ranges.at(nearest), ranges.at(i)));
    const std::size_t last = ranges.size() - 1;
    ranges.put(i, ranges.at(last));
    if (nearest == last) nearest = i;
    ranges.drop_last();
    i = 0;
  }
}

// The ranges of a device in this process.
class DirtyRanges {
 public:
  void add(const DirtyRange& range) { add_dirty(*this, range); }
  std::span<const DirtyRange> all() const { return ranges_; }
  // From when on all of them are in memory.
  Time placed() const {
    Time last{};
    for (const DirtyRange& range : ranges_) last = std::max(last, range.placed);
    return last;
  }
  // Drops the ranges that have been in memory since `now` or longer.
  void drop_placed(Time now) {
    std::erase_if(ranges_, [now](const DirtyRange& range) { return range.placed <= now; });
  }

  // For add_dirty().
  std::size_t size() const { return ranges_.size(); }
  const DirtyRange& at(std::size_t i) const { return ranges_[i]; }
  void put(std::size_t i, const DirtyRange& range) { ranges_[i] = range; }
  void add_last(const DirtyRange& range) { ranges_.push_back(range); }
  void drop_last() { ranges_.pop_back(); }

 private:
  std::vector<DirtyRange> ranges_;
};

}  // namespace perdura::fabric
