// Examines a file system that is not mounted, trusting nothing in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/pmem/region.h"
#include "services/fs/fs.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

// The geometry by the superblock at `offset`; nothing if that is not intact or has impossible
// values.
std::optional<Geometry> stored_geometry(pmem::Region& region, Bytes offset);
// Says why neither superblock gives a geometry, in words that follow the region's name.
std::string problem_of_superblocks(pmem::Region& region);

// Lists the damage and repairs it if `repair` is set. Throws UsageError if the region holds no nova
// file system at all. A repair leaves the owner's pages as they are; opening the volume marks them.
std::vector<fs::Damage> inspect(pmem::Region& region, bool repair, Owner* owner = nullptr);
// The file system, or one inode of it, as text. Throws UsageError if there can be no such inode, or
// if no superblock is intact.
std::string dump(pmem::Region& region, std::optional<fs::InodeNumber> inode,
                 Owner* owner = nullptr);

}  // namespace perdura::systems::nova
