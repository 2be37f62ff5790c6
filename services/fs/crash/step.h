// What the clients of a history do: operations on paths, and on inodes that several of them hold.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "services/fs/crash/operation.h"

namespace perdura::fs {

struct Step {
  Operation operation;  // without inodes, names, content and times
  // Of what it is done to, "A/foo", from the root on; "": the root. Of operations on names the last
  // part is the name.
  std::string path{};
  std::string new_path{};  // of a rename and a link
  // In place of a path: one of the inodes that are held, by its number. A step on one that is not
  // there does nothing.
  std::optional<std::size_t> slot{};
  // The inode that is found or made is held, under this number.
  std::optional<std::size_t> into{};
};

// "rename A/foo B/new".
std::string text_of(const Step& step);

// A path without its last part, and that.
struct SplitPath {
  std::string directory;
  std::string name;
};
SplitPath split_path(const std::string& path);

// Makes the tree that the sequences below begin with:
//
//   A/ foo (a block and a part of one, user.x), sub/
//   B/ bar (two blocks with a hole between them), hard
//   E/
//   bar (a part of a block; also B/hard)   ln (a symbolic link)
//
// and in slot 0 an inode without a name.
std::span<const Step> set_up_steps();

// All operations, each in the cases that differ: within a block and across, replacing and not, in
// one directory and across, with an error and without; on that tree, on names that it does not
// have, and on what other steps make. In the manner of ACE (Mohan et al., "Finding
// Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018).
std::span<const Step> all_steps();

}  // namespace perdura::fs
