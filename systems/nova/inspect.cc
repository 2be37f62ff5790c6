#include "systems/nova/inspect.h"

#include <fmt/format.h>

#include "systems/nova/inode.h"

namespace perdura::systems::nova {

std::optional<Geometry> stored_geometry(pmem::Region& region, Bytes offset) {
  if (region.size() < offset + sizeof(Superblock)) return std::nullopt;
  const auto superblock = region.read_object<Superblock>(offset);
  if (!is_intact(superblock) || superblock.size > region.size() || superblock.size < 16 * kBlock ||
      superblock.inodes < 1 || superblock.inodes > superblock.size / sizeof(InodeRecord) ||
      superblock.log_page_bytes < kSmallestLogPage || superblock.log_page_bytes > kBlock ||
      superblock.log_page_bytes % kCacheLine != 0) {
    return std::nullopt;
  }
  const Geometry geometry(superblock.size, superblock.inodes, superblock.log_page_bytes);
  if (geometry.first_block >= geometry.blocks) return std::nullopt;
  return geometry;
}

std::vector<fs::Damage> inspect(pmem::Region&, bool) { return {}; }
std::string dump(pmem::Region&, std::optional<fs::InodeNumber>) { return {}; }

}  // namespace perdura::systems::nova
