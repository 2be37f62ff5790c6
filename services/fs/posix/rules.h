// The rules of POSIX above inodes and names, as functions of attributes: who may do what, and which
// attributes change with it. They serve everything that gives programs access: Process, and a
// mount, for which the kernel checks the access.
//
// Where POSIX leaves a choice, they follow Linux.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "services/fs/fs.h"
#include "services/fs/posix/access_list.h"
#include "services/fs/posix/credentials.h"

namespace perdura::fs {

// --- access

// `wanted` is a combination of kMayRead, kMayWrite and kMayExecute; `list` is the inode's access
// list if it has one. A privileged process may do everything except execute a file that nobody may
// execute.
bool may_access(const Credentials& credentials, const Attributes& inode,
                const std::optional<AccessList>& list, std::uint32_t wanted);
// True if the sticky bit of a directory in which the process may write keeps it from removing or
// renaming an inode.
bool is_protected(const Credentials& credentials, const Attributes& directory,
                  const Attributes& inode);
// True if a user who is not the owner may give the inode another name (Linux'
// fs.protected_hardlinks). `accessible`: the user may read and write it.
bool is_safe_to_link(const Attributes& inode, bool accessible);

// --- creation

// A new inode's owner, mode and access lists.
struct Inherited {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<ExtendedAttribute> extended;
};
// The attributes of an inode created in a directory that may have a default list. The group is the
// process's, or the directory's if that is set-group-ID. The mode is restricted by the default list
// or, without one, by the file creation mask.
Inherited inherit(const Credentials& credentials, const Attributes& directory,
                  const std::optional<AccessList>& default_list, std::uint32_t mode,
                  std::uint32_t umask);

// --- changes of attributes

// An AttributeChange that owns the value it refers to. Must not be copied.
class PreparedChange {
 public:
  PreparedChange() = default;
  PreparedChange(PreparedChange&&) = default;
  PreparedChange& operator=(PreparedChange&&) = default;

  AttributeChange change{};
  // Makes the change also set the access list, or remove it with nullopt.
  void set_access_list(const std::optional<AccessList>& list);

 private:
  std::vector<std::byte> value_;
};

// chmod: operation_not_permitted unless the process owns the inode. Its access list, if it has one,
// follows the mode. Set-group-ID is cleared if the process is not in the inode's group.
Result<PreparedChange> change_mode(const Credentials& credentials, const Attributes& inode,
                                   const std::optional<AccessList>& list, std::uint32_t permissions,
                                   Timestamp now);
// chown, with the ids that are given. Clears set-user-ID and set-group-ID.
Result<PreparedChange> change_owner(const Credentials& credentials, const Attributes& inode,
                                    std::optional<std::uint32_t> uid,
                                    std::optional<std::uint32_t> gid, Timestamp now);
// Sets an access list (invalid_argument if it is not valid), or removes it with nullopt; the mode
// follows. A list that says no more than a mode is not stored.
Result<PreparedChange> change_access_list(const Credentials& credentials, const Attributes& inode,
                                          std::optional<AccessList> list, Timestamp now);
// True if writing or truncating by this process clears set-user-ID and set-group-ID.
inline bool write_clears_set_id(const Credentials& credentials) {
  return !credentials.is_privileged();
}
// The permissions after such a write, if WriteOptions::clear_set_id does not suffice: set-group-ID
// is also cleared without execute permission of the group, unless the writer is in the group.
std::optional<std::uint32_t> permissions_after_write(const Credentials& credentials,
                                                     const Attributes& inode);

// True if a read updates `accessed`, as with Linux' relatime: if it is not later than both
// `modified` and `changed`, or is at least a day old.
bool updates_accessed(const Attributes& inode, Timestamp now);

// --- extended attributes

// Checks if a process may read or write an extended attribute. `user.`: only on regular files and
// directories, and on sockets if the rules are those of a kernel that allows it (`on_sockets`), by
// their permissions (`accessible`); in sticky directories only the owner writes.
// `trusted.`: only privileged processes. `security.`: readable by all, written by privileged
// processes. Other names: operation_not_supported. Access lists are checked by
// change_access_list().
enum class AttributeAccess : std::uint8_t { read, write };
std::errc check_extended(const Credentials& credentials, const Attributes& inode,
                         std::string_view name, AttributeAccess access, bool accessible,
                         bool on_sockets);

}  // namespace perdura::fs
