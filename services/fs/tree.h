// All that can be reached from the root of a file system, for comparisons: of a system with the
// model, of what recovery has found with what it should find, of two systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "services/fs/fs.h"

namespace perdura::fs {

struct TreeOptions {
  bool times = false;  // of modification and change, which operations set
  bool data = true;    // what regular files contain
  bool holes = false;  // where files have space; else a block of zeros is a hole
};

struct Extent {
  Bytes offset = 0;
  std::vector<std::byte> bytes;
  bool operator==(const Extent&) const = default;
};

// An inode with all that does not differ from system to system.
struct TreeFile {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;
  std::uint64_t device = 0;
  Bytes size = 0;  // of directories 0
  Timestamp modified{};
  Timestamp changed{};
  std::string target{};                                      // of a symbolic link
  std::map<std::string, std::vector<std::byte>> extended{};  // attributes
  std::vector<Extent> data{};                                // ascending, not touching each other
  bool operator==(const TreeFile&) const = default;
};

struct Tree {
  // By path: "/", "/notes", "/home/mail". The number is that of the file below; names of one file
  // have the same. Files are numbered in the order of their first names, so equal trees are equal
  // values.
  std::map<std::string, std::size_t> names;
  std::vector<TreeFile> files;
  // What contradicts itself or could not be read, as sentences; empty in a file system that is
  // whole.
  std::vector<std::string> problems;

  // Of a path that exists.
  const TreeFile& at(const std::string& path) const { return files.at(names.at(path)); }
  bool operator==(const Tree&) const = default;
};

// While nobody changes the file system.
Task<Tree> read_tree(Session& session, TreeOptions options = {});

// The first difference in words, such as "/notes: 5 bytes instead of 7"; empty if they are equal.
// What is wrong stands in `found`.
std::string difference(const Tree& found, const Tree& expected);

}  // namespace perdura::fs
