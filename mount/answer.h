// Converts attributes to libfuse's types.
#pragma once

#include "mount/handler.h"

namespace perdura::mount {

// A mount may know inodes by more than their numbers (systems/orion/client/holds.h); programs see numbers.
constexpr unsigned kNumberBits = 40;

inline struct stat stat_of(const fs::Attributes& attributes) {
  struct stat found {};
  found.st_ino = static_cast<ino_t>(attributes.inode) & ((ino_t{1} << kNumberBits) - 1);
  found.st_mode = attributes.mode;
  found.st_nlink = attributes.links;
  found.st_uid = attributes.uid;
  found.st_gid = attributes.gid;
  found.st_rdev = attributes.device;
  found.st_size = static_cast<off_t>(attributes.size);
  found.st_blocks = static_cast<blkcnt_t>(attributes.blocks);
  found.st_blksize = fs::kBlock;
  const auto time_of = [](const fs::Timestamp& time) {
    return timespec{.tv_sec = time.seconds, .tv_nsec = time.nanoseconds};
  };
  found.st_atim = time_of(attributes.accessed);
  found.st_mtim = time_of(attributes.modified);
  found.st_ctim = time_of(attributes.changed);
  return found;
}

// `remembered`: the seconds for which the kernel may remember the name and the attributes.
inline fuse_entry_param entry_of(const fs::Attributes& attributes, double remembered) {
  fuse_entry_param entry{};
  entry.ino = static_cast<fuse_ino_t>(attributes.inode);
  entry.generation = attributes.generation;
  entry.attr = stat_of(attributes);
  // The name of a damaged inode can be removed; all other calls must reach us and return an error.
  entry.attr_timeout = attributes.damaged ? 0 : remembered;
  entry.entry_timeout = attributes.damaged ? 0 : remembered;
  return entry;
}

}  // namespace perdura::mount
