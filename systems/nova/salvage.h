// The parts of a damaged inode that can still be read.
#pragma once

#include <functional>

#include "systems/nova/inode.h"

namespace perdura::systems::nova {

// Makes the inode from all entries of its log whose checksums are right, also those after one that
// is wrong, and changes `record` to what it then has to say. `type` (S_IFMT) is what the inode's
// names say that it is, 0 if there are none: needed where its own record cannot be read. Log pages
// and blocks for which `is_anothers(block)` are left out, so that what two inodes claim stays with
// the one that is whole. A file may lack what it had, and have what it had earlier, since an entry
// that ended others may be lost; hence it must not be taken for the file that it was.
//
// False if nothing can be read: then the inode is as if it did not exist.
bool salvage(pmem::Region& region, const Geometry& geometry, Inode& inode, InodeRecord& record,
             std::uint32_t type, const std::function<bool(std::uint64_t)>& is_anothers);

}  // namespace perdura::systems::nova
