// What `inspect` finds, and how it is repaired.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "platform/pmem/region.h"
#include "services/fs/fs.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

struct Findings {
  // A summary of an inode; not all that is in its log, of which there may be a million.
  struct Known {
    bool exists = false;
    bool is_whole = false;
    bool is_reached = false;
    std::uint32_t mode = 0;
    std::uint32_t links = 0;
    std::uint32_t names = 0;
    std::uint64_t parent = 0;
    std::uint64_t named_in = 0;
  };
  struct NameOf {
    std::uint64_t directory = 0;
    std::uint64_t inode = 0;
    std::uint32_t type = 0;
    std::uint64_t cookie = 0;
    std::string name;
    bool is_again = false;  // the directory has the same name before
    bool is_wrong = false;  // there is no such inode
    bool has_wrong_type = false;
  };

  std::vector<fs::Damage> damage;
  Geometry geometry;
  std::optional<Bytes> lost_superblock;   // where it is
  std::vector<Known> inodes;              // by number
  std::vector<NameOf> names;              // by directory
  std::map<Bytes, std::uint64_t> redone;  // words that recovery would change by journals
  bool all_whole = true;                  // logs and journals
  bool has_shared_blocks = false;
};

Findings look_at(pmem::Region& region);

// Repairs one kind of what was found, the one on which others depend first; false if it can do
// nothing. Each step is whole or not there if a failure comes. Afterwards the next mount recovers.
bool repair_once(pmem::Region& region, const Findings& found);

}  // namespace perdura::systems::nova
