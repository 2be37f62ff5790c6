// The operations of a file system as values: what a client called, and what it was told. Histories
// of them can be drawn, kept, described and compared.
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

// Identifies an inode even if its number is reused. The root's generation counts as 0.
struct InodeId {
  InodeNumber number{};
  std::uint64_t generation = 0;
  auto operator<=>(const InodeId&) const = default;
};
inline constexpr InodeId kRoot{kRootInode, 0};
InodeId id_of(const Attributes& attributes);

struct Answer {
  std::errc error{};                   // errc{} if there was none
  std::vector<InodeId> inodes{};       // inodes in the answer, whose numbers the system chose
  std::string text{};                  // everything else, comparable
  std::shared_ptr<const Tree> tree{};  // answer of read_tree
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
    remount,    // unmounts and mounts; there must be no session, so perform() cannot do it
    unmount,    // by a client that has a mount of its own; perform() cannot do it, either
    read_tree,  // nobody else may use the file system
  };
  Kind kind = Kind::look_up;
  // If each client has a mount of its own (FsCluster): its number, from 1 on. Holds end with it.
  std::uint32_t mount = 0;
  InodeId inode = kRoot;      // its object: for operations on names, the directory
  InodeId directory = kRoot;  // the target directory of a rename or a link
  std::string name{};         // also of an extended attribute
  std::string new_name{};     // only of a rename and a link
  std::uint32_t mode = 0;     // only of a new inode
  std::string target{};       // only of a new symbolic link
  Bytes offset = 0;
  Bytes length = 0;
  // Determines the bytes of a write, an append or an extended attribute, together with their offset
  // in the file.
  std::uint64_t content = 0;
  RenameMode renaming = RenameMode::replace;
  AllocationMode allocation = AllocationMode::extend;
  // A new or changed inode also gets or loses the attribute "user.x".
  enum class Extended : std::uint8_t { none, set, remove } extended = Extended::none;
  bool owner = false;  // a change also sets the owner and the times
  bool clear_set_id = false;
  Timestamp now{};

  Answer answer{};
};

// Returns true if the operation may change the file system.
bool changes(const Operation& operation);
// Returns true if the operation may fail for lack of space: not if it only reads, or removes.
bool may_need_space(const Operation& operation);
// Returns true if the operation is of a name in the directory that is its inode.
bool takes_name(const Operation& operation);
// Such as "rename of foo in inode 1 to bar in inode 4".
std::string text_of(const Operation& operation);
// The same with the answer.
std::string text_of(const Operation& operation, const Answer& answer);

// Calls the session and waits for the answer.
Task<Answer> perform(Session& session, const Operation& operation);

}  // namespace perdura::fs
