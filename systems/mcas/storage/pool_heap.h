// The memory of a pool: a heap in the memory that the region allocator has given to the pool. The
// pool is given more when the heap is full. Also tracks which parts of the heap are reserved.
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

  // After a restart: adds all memory that the pool has, free until Heap::take() is called. Calls
  // `visit(area)` for each part of it.
  template <class Visit>
  void recover(Visit visit) {
    regions_.for_each([&](const RegionDescriptor& region) {
      if (region.identifier != pool_) return;
      visit(region.range());
      heap_.add_area(region.range());
    });
  }

  // Allocates as Heap does; requests more memory for the pool if there is no room.
  std::optional<ByteRange> allocate(Bytes length);
  void free(ByteRange object) { heap_.free(object); }

  // True if all of this range is in the pool's memory.
  bool contains(ByteRange range) const { return heap_.contains(range); }
  // True if it may be freed: it is an object, and not a reserved one.
  bool is_object(ByteRange range) const;

  // Allocates memory to which nothing refers until own() or release() is called for it.
  std::optional<ByteRange> reserve(Bytes length);
  void own(ByteRange reserved) { reserved_.erase(reserved.offset); }
  void release(ByteRange reserved);

  // Sets the values that concern memory; the others are 0.
  EngineStatistics statistics() const;
  // Returns an inconsistency, given that these objects are referred to, as a phrase; empty if there
  // is none.
  std::string audit(std::vector<ByteRange> objects) const;

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
