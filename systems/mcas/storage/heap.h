// The heap of a pool: an allocator for keys, values and table segments whose state is in DRAM only,
// so that allocating and freeing write nothing to persistent memory (MCAS, section 3.2.1: the
// reconstituting allocator). After a restart the state is rebuilt from the places and lengths of
// the objects that something persistent refers to: `take` is called for each of them. What was
// allocated and never referred to is then free, so a failure leaks nothing.
//
//   area      memory that the region allocator has given to the pool
//   region    an aligned part of an area, divided into slots of one size, a power of two
//   bucket    the regions whose slots have the same size
//
// An object of up to 4 KiB gets a slot of the next power of two: the first one that is free in the
// regions of its bucket, or one of a new region. Regions, and objects that are longer, come from
// the free ranges of the areas, by best fit. When all slots of a region have become free, the
// region is a free range again.
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
// A smaller region has fewer slots; so that it has several, objects in it are smaller, too.
inline constexpr Bytes kLeastSlots = 4;
inline constexpr Bytes kSmallestRegion = kLeastSlots * kSmallestSlot;

class Heap {
 public:
  struct Geometry {
    Bytes first = 0;                  // regions begin at this offset plus multiples of their size
    Bytes region_size = kRegionSize;  // a power of two, at least kSmallestRegion
    // For tests: asked before each allocation of a pool, which fails if it says so.
    std::function<bool()> refuses{};

    Bytes longest_in_region() const;
    // What an object of this length occupies.
    Bytes slot_size(Bytes length) const;
  };

  explicit Heap(const Geometry& geometry) : geometry_(geometry) {}

  // Whether all of this place lies in the memory that was added.
  bool contains(Place place) const;
  // Whether just this is an object that allocate() has returned or take() was called for: only then
  // may it be freed.
  bool is_allocated(Place object) const;

  // Adds memory. Its offset from `first`, and its length, are multiples of the region size.
  void add_area(Place area);

  // The place of a new object; nothing if there is no room. It is aligned to its slot's size, or to
  // a line if that is less.
  std::optional<Place> allocate(Bytes length);
  // Frees an object that allocate() has returned or take() was called for.
  void free(Place object);
  // After a restart: notes that an object is there. All areas must have been added. Throws
  // DamagedPool if no object can be there, or no memory is free.
  void take(Place object);
  // The same of a range in which objects outside of regions lie, and of a region that begins at
  // `offset`, of whose slots these are in use, a bit for each.
  void take_range(Place range);
  void take_region(Bytes offset, Bytes slot_size, std::span<const std::uint64_t> used_slots);

  Bytes free_bytes() const { return free_bytes_; }  // outside of the slots in use
  Bytes used_bytes() const { return area_bytes_ - free_bytes_; }
  std::uint64_t returned() const { return returned_; }  // regions that became free ranges again
  std::uint64_t regions() const;                        // in all buckets

  // Compares the state with what it should be: whether exactly these objects are allocated, none of
  // them overlaps another one, and all other memory is free. What contradicts this, as a phrase;
  // empty if nothing does.
  std::string audit(std::vector<Place> objects) const;

  // Equal if both would allocate the same places from now on.
  friend bool operator==(const Heap& a, const Heap& b) {
    return a.free_ranges_ == b.free_ranges_ && a.with_free_slots_ == b.with_free_slots_ &&
           a.same_regions(b);
  }

 private:
  // A region, by the number of its place: its offset from `first` divided by the region size.
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

  void add_to_areas(Place area);
  void add_range(Place range);
  // Takes a part out of the free range in which it lies.
  void remove_range(Place part);
  std::optional<Place> best_fit(Bytes length) const;
  bool same_regions(const Heap& other) const;

  Geometry geometry_;
  std::vector<Place> areas_;  // in the order of their offsets; those beside each other are one
  std::vector<std::unique_ptr<Region>> regions_;  // null: no region is at this place
  std::array<std::set<RegionNumber>, kBuckets> with_free_slots_;
  std::map<Bytes, Bytes> free_ranges_;                // length by offset
  std::set<std::pair<Bytes, Bytes>> ranges_by_size_;  // (length, offset)
  Bytes free_bytes_ = 0;
  Bytes area_bytes_ = 0;
  std::uint64_t returned_ = 0;
};

}  // namespace perdura::systems::mcas
