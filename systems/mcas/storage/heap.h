// The heap of a pool: an allocator for keys, values and table segments whose state is in DRAM only,
// so that allocating and freeing write nothing to persistent memory (MCAS, section 3.2.1: the
// reconstituting allocator). After a restart the state is rebuilt from the ranges of the
// objects to which persistent data refers: take() is called for each of them. An object that was
// allocated and never referred to is then free, so a failure leaks nothing.
//
//   area      memory that the region allocator has given to the pool
//   region    an aligned part of an area, divided into slots of one size, a power of two
//   bucket    the regions whose slots have the same size
//
// An object of up to 4 KiB gets a slot of the next power of two: the first free one in the regions
// of its bucket, or one of a new region. Regions, and longer objects, are taken from the free
// ranges of the areas, by best fit. When all slots of a region have become free, the region becomes
// a free range again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas {

inline constexpr Bytes kLongestInRegion = 4 * KiB;
inline constexpr Bytes kRegionSize = MiB;
inline constexpr Bytes kSmallestSlot = 32;
// A smaller region has fewer slots. It must have several, so its objects are smaller, too.
inline constexpr Bytes kLeastSlots = 4;
inline constexpr Bytes kSmallestRegion = kLeastSlots * kSmallestSlot;

class Heap {
 public:
  struct Geometry {
    Bytes first = 0;                  // regions begin at this offset plus multiples of their size
    Bytes region_size = kRegionSize;  // a power of two, at least kSmallestRegion
    // For tests: called before each allocation of a pool, which fails if it returns true.
    std::function<bool()> refuses{};

    Bytes longest_in_region() const;
    // The memory that an object of this length occupies.
    Bytes slot_size(Bytes length) const;
  };

  explicit Heap(const Geometry& geometry) : geometry_(geometry) {}

  // True if all of this range is in the memory that was added.
  bool contains(ByteRange range) const;
  // True if exactly this is an object that allocate() has returned or for which take() was called;
  // nothing else may be freed.
  bool is_allocated(ByteRange object) const;

  // Adds memory. Its offset from `first` and its length must be multiples of the region size.
  void add_area(ByteRange area);

  // Returns the range of a new object; nothing if there is no room. It is aligned to its slot's
  // size, or to a cache line if that is less.
  std::optional<ByteRange> allocate(Bytes length);
  // Frees an object that allocate() has returned or for which take() was called.
  void free(ByteRange object);
  // After a restart: marks an object as allocated. All areas must have been added. Throws
  // DamagedPool if no object can be there, or the memory is not free.
  void take(ByteRange object);
  // The same for a range in which there are objects outside of regions, and for a region that
  // begins at `offset`, with a bit for each slot: 1 if it is in use.
  void take_range(ByteRange range);
  void take_region(Bytes offset, Bytes slot_size, std::span<const std::uint64_t> used_slots);

  Bytes free_bytes() const { return free_bytes_; }  // bytes outside of the slots and objects in use
  Bytes used_bytes() const { return area_bytes_ - free_bytes_; }
  std::uint64_t returned() const { return returned_; }  // regions that became free ranges again
  std::uint64_t regions() const;                        // number of regions in all buckets

  // Checks that exactly these objects are allocated, that none of them overlaps another one, and
  // that all other memory is free. Returns a contradiction as a phrase; empty if there is none.
  std::string audit(std::vector<ByteRange> objects) const;

  // Equal if both would allocate the same ranges from now on.
  friend bool operator==(const Heap& a, const Heap& b) {
    return a.free_ranges_ == b.free_ranges_ && a.with_free_slots_ == b.with_free_slots_ &&
           a.same_regions(b);
  }

 private:
  // A region's number is its offset from `first` divided by the region size.
  using RegionNumber = std::uint64_t;
  struct Region {
    Bytes slot_size = 0;
    std::uint64_t used = 0;
    std::uint64_t perhaps_free = 0;         // no slot before this one is free
    std::vector<std::uint64_t> used_slots;  // a bit for each

    friend bool operator==(const Region& a, const Region& b) {
      return a.slot_size == b.slot_size && a.used_slots == b.used_slots;
    }
  };
  static constexpr std::size_t kBuckets = 8;  // slots of 32 bytes to 4 KiB

  static std::size_t bucket_of(Bytes slot_size);
  bool in_region(Bytes length) const { return length <= geometry_.longest_in_region(); }
  std::uint64_t slots_of(const Region& region) const {
    return geometry_.region_size / region.slot_size;
  }
  Bytes offset_of(RegionNumber number) const {
    return geometry_.first + number * geometry_.region_size;
  }
  RegionNumber number_of(Bytes offset) const {
    return (offset - geometry_.first) / geometry_.region_size;
  }
  Region& make_region(RegionNumber number, Bytes slot_size);
  std::optional<RegionNumber> new_region(Bytes slot_size);
  void use_slot(RegionNumber number, std::uint64_t slot);
  void free_slot(RegionNumber number, std::uint64_t slot);

  void add_to_areas(ByteRange area);
  void add_range(ByteRange range);
  // Removes a part from the free range that contains it.
  void remove_range(ByteRange part);
  std::optional<ByteRange> best_fit(Bytes length) const;
  bool same_regions(const Heap& other) const;

  Geometry geometry_;
  std::vector<ByteRange> areas_;                  // by offset; adjacent ones are joined
  std::vector<std::unique_ptr<Region>> regions_;  // null: there is no region with this index
  std::array<std::set<RegionNumber>, kBuckets> with_free_slots_;
  std::map<Bytes, Bytes> free_ranges_;                // length by offset
  std::set<std::pair<Bytes, Bytes>> ranges_by_size_;  // (length, offset)
  Bytes free_bytes_ = 0;
  Bytes area_bytes_ = 0;
  std::uint64_t returned_ = 0;
};

}  // namespace perdura::systems::mcas
