// Recovers the readable parts of a damaged inode.
#pragma once

#include <functional>

#include "systems/nova/inode.h"

namespace perdura::systems::nova {

// Rebuilds the inode from all entries of its log whose checksums are right, including those after a
// damaged one, and updates `record` to match. `type` (S_IFMT) is the type that the inode's names
// give it, 0 if it has none; it is needed if the inode's own record cannot be read. Log pages and
// blocks for which `is_anothers(block)` is true are left out, so that whatever two inodes claim
// stays with the intact one. A salvaged file may lack data that it had, and may have data that it
// had lost, because an entry that superseded others may be missing; hence it must not be taken for
// the original file.
//
// Returns false if nothing can be read: then the inode is as if it did not exist.
bool salvage(pmem::Region& region, const Geometry& geometry, Inode& inode, InodeRecord& record,
             std::uint32_t type, const std::function<bool(std::uint64_t)>& is_anothers);

}  // namespace perdura::systems::nova
