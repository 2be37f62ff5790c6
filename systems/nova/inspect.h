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

std::vector<fs::Damage> inspect(pmem::Region& region, bool repair);
std::string dump(pmem::Region& region, std::optional<fs::InodeNumber> inode);

}  // namespace perdura::systems::nova
