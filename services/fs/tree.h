// Reads everything that can be reached from the root of a file system, for comparisons: of a system
// with the model, of the state after recovery with the expected one, of two systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "services/fs/fs.h"

namespace perdura::fs {

struct TreeOptions {
  bool times = false;  // times of modification and change, which operations set
  bool data = true;    // contents of regular files
  bool holes = false;  // where files have space; if false, a block of zeros counts as a hole
};

struct Extent {
  Bytes offset = 0;
  std::vector<std::byte> bytes;
  bool operator==(const Extent&) const = default;
};

// An inode, without the attributes that differ from system to system.
struct TreeFile {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;
  std::uint64_t device = 0;
  Bytes size = 0;  // 0 for directories
  Timestamp modified{};
  Timestamp changed{};
  std::string target{};                                      // only of symbolic links
  std::map<std::string, std::vector<std::byte>> extended{};  // attributes
  std::vector<Extent> data{};                                // ascending, not touching each other
  bool operator==(const TreeFile&) const = default;
};

struct Tree {
  // By path: "/", "/notes", "/home/mail". The number is an index into `files`; names of the same
  // file have the same one. Files are numbered in the order of their first names, so equal trees
  // are equal values.
  std::map<std::string, std::size_t> names;
  std::vector<TreeFile> files;
  // Contradictions and read errors, as sentences; empty if the file system is intact.
  std::vector<std::string> problems;

  // The path must exist.
  const TreeFile& at(const std::string& path) const { return files.at(names.at(path)); }
  bool operator==(const Tree&) const = default;
};

// Nobody may change the file system meanwhile.
Task<Tree> read_tree(Session& session, TreeOptions options = {});

// The first difference in words, such as "/notes: 5 bytes instead of 7"; empty if they are equal.
// `found` is the tree that is described as wrong.
std::string difference(const Tree& found, const Tree& expected);

}  // namespace perdura::fs
