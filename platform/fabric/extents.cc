#include "platform/fabric/extents.h"

#include <fmt/core.h>

#include <limits>

#include "platform/base/error.h"

namespace perdura::fabric {
namespace {

Bytes end_of(const Extent& extent) { return extent.at + extent.length; }

// The first extent that ends after `at`.
auto first_behind(std::vector<Extent>& extents, Bytes at) {
  return std::partition_point(extents.begin(), extents.end(),
                              [at](const Extent& extent) { return end_of(extent) <= at; });
}

bool adjoin(const Extent& a, const Extent& b) {
  return end_of(a) == b.at && a.offset + a.length == b.offset;
}

}  // namespace

void ExtentTable::map(const Extent& extent, Bytes region_size) {
  if (extent.offset > region_size || extent.length > region_size - extent.offset) {
    throw PlatformError(fmt::format("cannot map bytes {}..{} of a region that has {}",
                                    extent.offset, extent.offset + extent.length, region_size));
  }
  if (extent.length > std::numeric_limits<Bytes>::max() - extent.at) {
    throw PlatformError(fmt::format("cannot map {} bytes at {}: the end of what can be addressed",
                                    extent.length, extent.at));
  }
  if (extent.length == 0) return;
  unmap(extent.at, extent.length);
  auto place = extents_.insert(first_behind(extents_, extent.at), extent);
  if (const auto next = place + 1; next != extents_.end() && adjoin(*place, *next)) {
    place->length += next->length;
    place = extents_.erase(next) - 1;
  }
  if (place != extents_.begin() && adjoin(*(place - 1), *place)) {
    (place - 1)->length += place->length;
    extents_.erase(place);
  }
}

void ExtentTable::unmap(Bytes at, Bytes length) {
  if (length == 0) return;
  const Bytes end = length > std::numeric_limits<Bytes>::max() - at
                        ? std::numeric_limits<Bytes>::max()
                        : at + length;
  auto first = first_behind(extents_, at);
  if (first != extents_.end() && first->at < at) {
    // Splits the extent in which the gap begins: the part before the gap stays, and the part after
    // it, if any, becomes an extent of its own.
    const Extent whole = *first;
    first->length = at - whole.at;
    const Bytes kept = first->length;
    first = extents_.insert(first + 1, {at, whole.offset + kept, whole.length - kept});
  }
  auto last = first;
  while (last != extents_.end() && end_of(*last) <= end) ++last;
  if (last != extents_.end() && last->at < end) {
    const Bytes gone = end - last->at;
    *last = {end, last->offset + gone, last->length - gone};
  }
  extents_.erase(first, last);
}

bool ExtentTable::is_hole(Bytes at, Bytes length) const {
  const auto first =
      std::partition_point(extents_.begin(), extents_.end(),
                           [at](const Extent& extent) { return end_of(extent) <= at; });
  return first == extents_.end() || length == 0 || first->at - std::min(first->at, at) >= length;
}

ExtentTable make_extent_table(std::span<const Extent> extents, Bytes region_size) {
  ExtentTable table;
  for (const Extent& extent : extents) {
    if (!table.is_hole(extent.at, extent.length)) {
      throw PlatformError(fmt::format("two extents of a registration are at {}..{}", extent.at,
                                      extent.at + extent.length));
    }
    table.map(extent, region_size);
  }
  return table;
}

}  // namespace perdura::fabric
