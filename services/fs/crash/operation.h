// The operations of a file system as values, so that histories of them can be drawn, kept,
// described and compared: what a client called, and what it was told.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "services/fs/fs.h"
#include "services/fs/tree.h"

namespace perdura::fs {

// Which inode it is, also if its number is used again. The root's generation counts as 0.
struct InodeId {
  InodeNumber number{};
  std::uint64_t generation = 0;
  auto operator<=>(const InodeId&) const = default;
};
inline constexpr InodeId kRoot{kRootInode, 0};
InodeId id_of(const Attributes& attributes);

struct Answer {
  std::errc error{};                   // errc{} if there was none
  std::vector<InodeId> inodes{};       // that it names, whose numbers are up to the system
  std::string text{};                  // all else, comparable
  std::shared_ptr<const Tree> tree{};  // of read_tree
};

struct Operation {
  enum class Kind : std::uint8_t {
    look_up,
    create,
    create_unnamed,
    link,
    unlink,
    remove_directory,
    rename,
    attributes,
    change,
    set_extended,
    remove_extended,
    read,
    write,
    append,
    truncate,
    allocate,
    sync,
    sync_all,
    hold,
    release,
    remount,    // unmounts it and mounts it again; without any session, so perform() cannot
    read_tree,  // of one that nobody else uses
  };
  Kind kind = Kind::look_up;
  InodeId inode = kRoot;      // what it is done to: of operations on names the directory
  InodeId directory = kRoot;  // the other one of a rename; of a link the one that gets the name
  std::string name{};         // of an extended attribute, too
  std::string new_name{};     // of a rename and a link
  std::uint32_t mode = 0;     // of a new inode
  std::string target{};       // of a new symbolic link
  Bytes offset = 0;
  Bytes length = 0;
  // What a write, an append or an extended attribute holds: bytes that depend on this and on where
  // in the file they are.
  std::uint64_t content = 0;
  RenameMode renaming = RenameMode::replace;
  AllocationMode allocation = AllocationMode::extend;
  // A new inode, or an inode that is changed, gets or loses this one, too: "user.x".
  enum class Extended : std::uint8_t { none, set, remove } extended = Extended::none;
  bool owner = false;  // a change is also of the owner and the times
  bool clear_set_id = false;
  Timestamp now{};

  Answer answer{};
};

// Whether it may leave the file system other than it was.
bool changes(const Operation& operation);
// "rename of foo in inode 1 to bar in inode 4".
std::string text_of(const Operation& operation);
// The same with what was answered.
std::string text_of(const Operation& operation, const Answer& answer);

// Calls the session, and waits for the answer.
Task<Answer> perform(Session& session, const Operation& operation);

}  // namespace perdura::fs
