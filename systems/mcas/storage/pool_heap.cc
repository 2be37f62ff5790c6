#include "systems/mcas/storage/pool_heap.h"

#include <algorithm>
#include <iterator>

namespace perdura::systems::mcas {

std::optional<Place> PoolHeap::allocate(Bytes length) {
  if (geometry_.refuses && geometry_.refuses()) return std::nullopt;
  if (const std::optional<Place> found = heap_.allocate(length)) return found;
  const std::optional<Place> area =
      regions_.allocate(std::max(geometry_.region_size, geometry_.slot_size(length)), pool_);
  if (!area) return std::nullopt;
  ++regions_added_;
  heap_.add_area(*area);
  return heap_.allocate(length);
}

std::optional<Place> PoolHeap::reserve(Bytes length) {
  const std::optional<Place> place = allocate(length);
  if (place) reserved_.emplace(place->offset, place->length);
  return place;
}

bool PoolHeap::is_object(Place place) const {
  if (!heap_.is_allocated(place)) return false;
  const auto behind = reserved_.lower_bound(place.offset + geometry_.slot_size(place.length));
  if (behind == reserved_.begin()) return true;
  const auto [offset, length] = *std::prev(behind);
  return offset + geometry_.slot_size(length) <= place.offset;
}

void PoolHeap::release(Place reserved) {
  own(reserved);
  free(reserved);
}

EngineStatistics PoolHeap::statistics() const {
  return {.capacity = regions_.capacity_of(pool_),
          .free = regions_.free_bytes_of(pool_) + heap_.free_bytes(),
          .regions_added = regions_added_,
          .heap_regions_returned = heap_.returned()};
}

std::string PoolHeap::audit(std::vector<Place> objects) const {
  for (const auto& [offset, length] : reserved_) objects.push_back({offset, length});
  return heap_.audit(std::move(objects));
}

}  // namespace perdura::systems::mcas
