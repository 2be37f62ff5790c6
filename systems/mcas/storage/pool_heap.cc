#include "systems/mcas/storage/pool_heap.h"

#include <algorithm>
#include <iterator>

namespace perdura::systems::mcas {

std::optional<ByteRange> PoolHeap::allocate(Bytes length) {
  if (geometry_.refuses && geometry_.refuses()) return std::nullopt;
  if (const std::optional<ByteRange> found = heap_.allocate(length)) return found;
  const std::optional<ByteRange> area =
      regions_.allocate(std::max(geometry_.region_size, geometry_.slot_size(length)), pool_);
  if (!area) return std::nullopt;
  ++regions_added_;
  heap_.add_area(*area);
  return heap_.allocate(length);
}

std::optional<ByteRange> PoolHeap::reserve(Bytes length) {
  const std::optional<ByteRange> range = allocate(length);
  if (range) reserved_.emplace(range->offset, range->length);
  return range;
}

bool PoolHeap::is_object(ByteRange range) const {
  if (!heap_.is_allocated(range)) return false;
  const auto behind = reserved_.lower_bound(range.offset + geometry_.slot_size(range.length));
  if (behind == reserved_.begin()) return true;
  const auto [offset, length] = *std::prev(behind);
  return offset + geometry_.slot_size(length) <= range.offset;
}

void PoolHeap::release(ByteRange reserved) {
  own(reserved);
  free(reserved);
}

EngineStatistics PoolHeap::statistics() const {
  return {.capacity = regions_.capacity_of(pool_),
          .free = regions_.free_bytes_of(pool_) + heap_.free_bytes(),
          .regions_added = regions_added_,
          .heap_regions_returned = heap_.returned()};
}

std::string PoolHeap::audit(std::vector<ByteRange> objects) const {
  for (const auto& [offset, length] : reserved_) objects.push_back({offset, length});
  return heap_.audit(std::move(objects));
}

}  // namespace perdura::systems::mcas
