// What can be said of a file system that is not mounted, without believing anything in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/pmem/region.h"
#include "services/fs/fs.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

// By the superblock at `offset`; nothing if it is not intact, or says what cannot be.
std::optional<Geometry> stored_geometry(pmem::Region& region, Bytes offset);
// Why there is none by either superblock, in words that follow the region's name.
std::string problem_of_superblocks(pmem::Region& region);

// Throws UsageError if there is nothing of a file system.
std::vector<fs::Damage> inspect(pmem::Region& region, bool repair);
// Throws UsageError if there can be no such inode, or if no superblock is intact.
std::string dump(pmem::Region& region, std::optional<fs::InodeNumber> inode);

}  // namespace perdura::systems::nova
