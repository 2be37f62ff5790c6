// The findings of `inspect`, and their repair.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/region.h"
#include "services/fs/fs.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

inline constexpr auto kRoot = static_cast<std::uint64_t>(fs::kRootInode);
inline constexpr std::string_view kLostAndFound = "lost+found";

struct Findings {
  // A summary of an inode. A log may have a million entries, so they are not kept.
  struct Known {
    bool exists = false;
    bool is_whole = false;
    bool is_reached = false;
    std::uint32_t mode = 0;
    std::uint32_t links = 0;
    std::uint32_t names = 0;
    std::uint64_t parent = 0;
    std::uint64_t named_in = 0;
    fs::Timestamp created{};
  };
  struct NameOf {
    std::uint64_t directory = 0;
    std::uint64_t inode = 0;
    std::uint32_t type = 0;
    std::uint64_t cookie = 0;
    std::string name;
    bool is_again = false;  // an earlier entry of the directory has the same name
    bool is_wrong = false;  // the inode does not exist
    bool has_wrong_type = false;
  };

  std::vector<fs::Damage> damage;
  Geometry geometry;
  std::optional<Bytes> lost_superblock;   // its offset
  std::vector<Known> inodes;              // index: the inode's number
  std::vector<NameOf> names;              // sorted by directory
  std::map<Bytes, std::uint64_t> redone;  // words that recovery would change by journals
  bool all_whole = true;                  // all logs and journals
  // The bitmap of used blocks that a clean unmount has saved, if nothing was mounted since and it
  // agrees with all that is whole; else empty.
  std::vector<std::uint64_t> saved_blocks;
  bool has_shared_blocks = false;
};

Findings look_at(pmem::Region& region, Owner* owner);

// Repairs one kind of damage, the one on which others depend first, and adds to `losses` what
// inodes have lost by it. Returns false if it can do nothing. A failure leaves each step either done
// or not begun. The next mount recovers.
bool repair_once(pmem::Region& region, const Findings& found, std::vector<fs::Damage>& losses);

}  // namespace perdura::systems::nova
