// Making file systems, and opening those that exist.
#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/nova/inspect.h"
#include "systems/nova/volume.h"

namespace perdura::systems::nova {

namespace {

// Numbers of blocks and pages must differ, and no run of both may be adjacent.
void require_numbers_below_pages(const pmem::Region& region, const Geometry& geometry) {
  if (geometry.owner == nullptr || geometry.blocks < kFirstPage) return;
  throw UsageError(fmt::format("'{}' has {} blocks; with data elsewhere it can have {} at most",
                               region.name(), geometry.blocks, kFirstPage - 1));
}

}  // namespace

void make_volume(pmem::Region& region, const Geometry& geometry, const fs::FsConfig& config) {
  require_numbers_below_pages(region, geometry);
  Geometry stored = geometry;
  stored.size = geometry.blocks * kBlock;
  // The root directory, then the superblock's copy, and the superblock itself last: until it is
  // there, the region is no file system.
  InodeRecord root{.state = state_word(1, true),
                   .parent = static_cast<std::uint64_t>(fs::kRootInode)};
  root.base.mode = S_IFDIR | (config.root_mode & 07777);
  root.base.number = static_cast<std::uint64_t>(fs::kRootInode);
  root.base.generation = 1;
  root.base.uid = config.root_uid;
  root.base.gid = config.root_gid;
  root.base.links = 1;
  root.base.created_seconds = config.now.seconds;
  root.base.created_nanoseconds = config.now.nanoseconds;
  root.base.crc = checksum(root.base);
  region.write_object(geometry.inode_offset(root.base.number), root);
  region.flush(geometry.inode_offset(root.base.number), sizeof root);
  const Superblock superblock = superblock_of(stored);
  region.write_object(kSuperblockCopy, superblock);
  region.persist(kSuperblockCopy, sizeof superblock);
  region.write_object(0, superblock);
  region.persist(0, sizeof superblock);
}

Task<std::unique_ptr<Volume>> open_volume(Thread& thread, pmem::Region& region,
                                          const Geometry& geometry, const Parameters& parameters,
                                          std::uint32_t threads, bool read_only) {
  const std::string& name = region.name();
  std::optional<Geometry> stored = stored_geometry(region, 0);
  if (!stored) {
    const bool has_copy = stored_geometry(region, kSuperblockCopy).has_value();
    throw UsageError(
        has_copy
            ? fmt::format("'{}' has no intact superblock; perdura fs check --repair mends it", name)
            : fmt::format("'{}' {}", name, problem_of_superblocks(region)));
  }
  stored->owner = geometry.owner;
  require_numbers_below_pages(region, *stored);
  auto volume = std::make_unique<Volume>(region, *stored, parameters, threads);
  const std::uint64_t mark = region.load(kCleanOffset);
  // The saved bitmaps do not tell which pages of an owner are used.
  if (stored->owner != nullptr || mark == 0 || !volume->load_saved(mark)) {
    co_await volume->recover(thread, read_only);
  }
  if (const std::string damage = volume->root_damage(); !damage.empty()) {
    throw UsageError(
        fmt::format("'{}' is damaged: its root directory, {}; perdura fs check --repair mends it",
                    name, damage));
  }
  // From here on the saved bitmaps do not count.
  region.store(kCleanOffset, 0);
  region.persist(kCleanOffset, kWord);
  co_return volume;
}

}  // namespace perdura::systems::nova
