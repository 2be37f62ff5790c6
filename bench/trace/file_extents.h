// Where the bytes of real files are: their extents, as the file system tells by FIEMAP
// (Documentation/filesystems/fiemap.rst of Linux).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/trace/translation_replay.h"

namespace perdura::bench {

struct LaidOutFile {
  std::string name;  // below the directory
  Bytes size = 0;
  std::vector<FileExtent> extents;
};

struct DirectoryExtents {
  std::uint64_t files = 0;
  Bytes bytes = 0;
  std::uint64_t extents = 0;        // as the file system counts them
  std::uint64_t without_place = 0;  // extents of which it does not tell the place: within inodes
  std::uint64_t unreadable = 0;     // files and directories that this user may not read
};

// Calls `use` for each regular file below the directory, in the order of names; a file with several
// names once, and nothing of other file systems. Delayed allocations are written first, so that they
// have a place. Throws UsageError if `directory` cannot be read or its file system has no FIEMAP.
DirectoryExtents read_extents(const std::filesystem::path& directory,
                              const std::function<void(const LaidOutFile&)>& use);

}  // namespace perdura::bench
