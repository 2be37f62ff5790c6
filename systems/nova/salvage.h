// Recovers the readable parts of a damaged inode.
//
// A log that has lost an entry may have lost the one that freed a block. Other files may have used
// the block since, and it may hold their data. No word of the layout says whom a block belongs to,
// so a repair tells by the place in the log:
//
//   log      | write | truncate | write | (lost) | write | attributes |
//              \______ doubtful _______/           \____ certain ____/
//
// What an entry says is certain if no later entry is lost: had it been superseded, an entry that can
// be read would say so. All else is doubtful.
#pragma once

#include <functional>

#include "systems/nova/inode.h"

namespace perdura::systems::nova {

// How much of a damaged inode could be read, and how much of that is certain.
struct Salvaged {
  bool is_readable = false;  // false: nothing, so that the inode is as if it did not exist
  bool has_lost_entries = true;
  // The number of the first page of `Inode::log` whose entries are certain. In a salvaged log, the
  // entries after a lost one count as another page.
  std::uint64_t first_certain = 0;

  // The number of the page may be given modulo Mapped::kPages; then too much is doubtful.
  bool is_doubtful(std::uint64_t page) const { return page < first_certain; }
};

// True if an inode that does not exist, but has a name in a whole directory, has lost only the bit
// that says that it exists: an inode is deleted together with its last name.
bool has_lost_its_state(const Geometry& geometry, std::uint64_t number, const InodeRecord& record);

using BlockTest = std::function<bool(std::uint64_t)>;

// Rebuilds the inode from all entries of its log whose checksums are right, including those after a
// damaged one, and updates `record` to match. `type` (S_IFMT) is the type that the inode's names
// give it, 0 if it has none; it is needed if the inode's own record cannot be read. Log pages and
// blocks for which `is_anothers(block)` is true are left out, so that whatever two inodes claim
// stays with the intact one; so are values and targets of links whose checksums are wrong.
//
// A salvaged file may lack data that it had, and has doubtful blocks; hence it must not be taken
// for the original file, nor shown to anybody before leave_out_doubtful().
Salvaged salvage(pmem::Region& region, const Geometry& geometry, Inode& inode, InodeRecord& record,
                 std::uint32_t type, const BlockTest& is_anothers);

// Makes a hole of each doubtful block, unless `is_own(block)` is true, and returns how many they
// are. Doubtful values of attributes stay, since their checksums tell that they are the inode's, but
// not if `is_free(block)` is true of one of their blocks.
std::uint64_t leave_out_doubtful(Inode& inode, const Salvaged& salvaged, const BlockTest& is_own,
                                 const BlockTest& is_free);

// Drops blocks that belong to another inode. A block that the inode has twice stays where the later
// entry says.
void leave_out_shared(Inode& inode, const BlockTest& is_anothers);

}  // namespace perdura::systems::nova
