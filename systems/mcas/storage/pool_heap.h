// The memory of a pool: a heap in what the region allocator has given to the pool, which is given
// more when the heap is full; and which of it is reserved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "systems/mcas/storage/engine.h"
#include "systems/mcas/storage/heap.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas {

class PoolHeap {
 public:
  PoolHeap(RegionAllocator& regions, std::uint64_t pool, const Heap::Geometry& geometry)
      : regions_(regions), pool_(pool), geometry_(geometry), heap_(geometry) {}

  // After a restart: all memory that the pool has is free, until Heap::take(). Calls `visit(area)`
  // for each part of it.
  template <class Visit>
  void recover(Visit visit) {
    regions_.for_each([&](const RegionDescriptor& region) {
      if (region.identifier != pool_) return;
      visit(region.place());
      heap_.add_area(region.place());
    });
  }

  // As Heap does; with more memory for the pool if there is no room.
  std::optional<Place> allocate(Bytes length);
  void free(Place object) { heap_.free(object); }

  // Whether all of this place lies in the pool's memory.
  bool contains(Place place) const { return heap_.contains(place); }
  // Whether it may be freed: it is an object, and no reserved one.
  bool is_object(Place place) const;

  // Allocates what nothing refers to until own() or release() is called for it.
  std::optional<Place> reserve(Bytes length);
  void own(Place reserved) { reserved_.erase(reserved.offset); }
  void release(Place reserved);

  // Those of the memory; the others are 0.
  EngineStatistics statistics() const;
  // What contradicts itself, as a phrase, if these objects are referred to; empty if nothing does.
  std::string audit(std::vector<Place> objects) const;

  Heap& heap() { return heap_; }
  const Heap& heap() const { return heap_; }

 private:
  RegionAllocator& regions_;
  std::uint64_t pool_;
  Heap::Geometry geometry_;
  Heap heap_;
  std::map<Bytes, Bytes> reserved_;  // length by offset
  std::uint64_t regions_added_ = 0;
};

}  // namespace perdura::systems::mcas
