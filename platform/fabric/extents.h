// Tables of the extents of a registration (fabric.h, ExtentMap), for the platforms that translate
// addresses themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "platform/fabric/types.h"

namespace perdura::fabric {

// A part of an access, as a range of the region. `extent` is the number of the extent that contains
// it.
struct RegionPiece {
  Bytes offset = 0;
  Bytes length = 0;
  std::size_t extent = 0;
};

// The number of the extents that begin at `at` or before. `extent_of(i)` is the i-th of `count`
// extents, in the order of `at`.
template <class ExtentOf>
std::size_t count_up_to(std::size_t count, ExtentOf extent_of, Bytes at) {
  std::size_t low = 0;
  for (std::size_t high = count; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (extent_of(middle).at <= at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Fills `pieces` with the ranges of the region that an access to `length` bytes from `at` on
// touches, in order. Returns false if it touches a hole. The extents are those of count_up_to().
template <class ExtentOf>
bool find_pieces(std::size_t count, ExtentOf extent_of, Bytes at, Bytes length,
                 std::vector<RegionPiece>& pieces) {
  pieces.clear();
  const std::size_t begun = count_up_to(count, extent_of, at);
  if (length == 0) return true;
  if (begun == 0) return false;
  for (std::size_t i = begun - 1; i < count; ++i) {
    const Extent extent = extent_of(i);
    if (at < extent.at || at - extent.at >= extent.length) return false;
    const Bytes inside = at - extent.at;
    const Bytes part = std::min(length, extent.length - inside);
    pieces.push_back({extent.offset + inside, part, i});
    at += part;
    length -= part;
    if (length == 0) return true;
  }
  return false;
}

// Adds to `pieces` the ranges of the region that are mapped between `begin` and `end`, without the
// holes.
template <class ExtentOf>
void add_mapped(std::size_t count, ExtentOf extent_of, Bytes begin, Bytes end,
                std::vector<RegionPiece>& pieces) {
  const std::size_t begun = count_up_to(count, extent_of, begin);
  for (std::size_t i = begun == 0 ? 0 : begun - 1; i < count; ++i) {
    const Extent extent = extent_of(i);
    if (extent.at >= end) return;
    const Bytes from = std::max(begin, extent.at);
    const Bytes to = std::min(end, extent.at + extent.length);
    if (from < to) pieces.push_back({extent.offset + (from - extent.at), to - from, i});
  }
}

// Non-overlapping extents, sorted by `at`. Extents that are adjacent both in the registration and
// in the region are merged.
class ExtentTable {
 public:
  // Throws PlatformError, and changes nothing, if the extent is not in a region of this size or
  // exceeds the addressable range.
  void map(const Extent& extent, Bytes region_size);
  void unmap(Bytes at, Bytes length);
  // True if no extent covers any of these bytes.
  bool is_hole(Bytes at, Bytes length) const;

  std::span<const Extent> extents() const { return extents_; }
  bool find(Bytes at, Bytes length, std::vector<RegionPiece>& pieces) const {
    return find_pieces(
        extents_.size(), [this](std::size_t i) { return extents_[i]; }, at, length, pieces);
  }
  void add_mapped(Bytes begin, Bytes end, std::vector<RegionPiece>& pieces) const {
    fabric::add_mapped(
        extents_.size(), [this](std::size_t i) { return extents_[i]; }, begin, end, pieces);
  }

 private:
  std::vector<Extent> extents_;
};

// The table of a new registration. Throws PlatformError as map() does, and if two extents overlap.
ExtentTable make_extent_table(std::span<const Extent> extents, Bytes region_size);

}  // namespace perdura::fabric
