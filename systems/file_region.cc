#include "systems/file_region.h"

#include <fmt/format.h>

#include <utility>

#include "platform/base/error.h"

namespace perdura::systems {

FileRegion::~FileRegion() {
  if (map_) endpoint_.deregister_memory(*map_);
}

const fabric::ExtentMap& FileRegion::bound(const char* what) const {
  if (map_) return *map_;
  throw PlatformError(
      fmt::format("a FileMR that is bound to no file {}; bind it to a file first", what));
}

fabric::RemoteKey FileRegion::bind(std::span<const fabric::Extent> extents) {
  if (map_) throw PlatformError("a FileMR is bound to a file already; destroy that binding first");
  fabric::ExtentTable table = fabric::make_extent_table(extents, region_.size());
  map_ = endpoint_.register_extents(region_, extents, access_);
  table_ = std::move(table);
  return map_->key;
}

// The device maps one extent at a time, so a change of several begins with a hole.
Task<> FileRegion::update(Bytes at, Bytes length, std::span<const fabric::Extent> extents) {
  const fabric::ExtentMap map = bound("has no extents");
  const bool is_one = extents.size() == 1 && extents[0].at == at && extents[0].length == length;
  if (!is_one && !table_.is_hole(at, length)) {
    table_.unmap(at, length);
    co_await endpoint_.unmap_extents(map, at, length);
  }
  for (const fabric::Extent& extent : extents) {
    table_.map(extent, region_.size());
    co_await endpoint_.map_extent(map, extent);
  }
}

Task<> FileRegion::destroy() {
  const fabric::ExtentMap map = bound("has no binding");
  map_.reset();
  if (!extents().empty()) {
    const fabric::Extent last = extents().back();
    co_await endpoint_.unmap_extents(map, 0, last.at + last.length);
  }
  endpoint_.deregister_memory(map);
}

}  // namespace perdura::systems
