// The steps of the clients of a history: operations on paths, and on inodes that several clients
// hold.
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
  // Path of the object from the root, "A/foo"; "" is the root. For operations on names, the last
  // component is the name.
  std::string path{};
  std::string new_path{};  // only of a rename and a link
  // Instead of a path: the number of a held inode. The step does nothing if the slot is empty.
  std::optional<std::size_t> slot{};
  // The inode that is found or made is held in this slot.
  std::optional<std::size_t> into{};
};

// Such as "rename A/foo B/new".
std::string text_of(const Step& step);

// The most calls that the step makes: look-ups of the directories on its paths, and its own.
std::size_t calls_of(const Step& step);

// A path without its last component, and that component.
struct SplitPath {
  std::string directory;
  std::string name;
};
SplitPath split_path(const std::string& path);

// Makes the tree that the sequences start with:
//
//   A/ foo (a block and a part of one, user.x), sub/
//   B/ bar (two blocks with a hole between them), hard
//   E/
//   bar (a part of a block; also B/hard)   ln (a symbolic link)
//
// and in slot 0 an inode without a name.
std::span<const Step> set_up_steps();

// All operations, each in the cases that differ: within a block and across blocks, replacing and
// not, in one directory and across directories, with an error and without; on that tree, on names
// that it lacks, and on files that other steps make. In the manner of ACE (Mohan et al., "Finding
// Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018).
std::span<const Step> all_steps();

}  // namespace perdura::fs
