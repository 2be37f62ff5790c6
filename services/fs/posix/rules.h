// What POSIX demands of a file system beyond inodes and names, as functions of attributes: who may
// do what, and what changes with it. For whatever gives programs access: Process, and a mount, for
// which the kernel checks the access.
//
// Where POSIX leaves a choice, it is that of Linux.
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

// `wanted`: some of kMayRead, kMayWrite and kMayExecute; `list`: the inode's access list if it has
// one. A privileged process may do all but execute files that nobody may.
bool may_access(const Credentials& credentials, const Attributes& inode,
                const std::optional<AccessList>& list, std::uint32_t wanted);
// Whether the sticky bit of a directory, in which the process may write, keeps it from removing or
// renaming an inode.
bool is_protected(const Credentials& credentials, const Attributes& directory,
                  const Attributes& inode);
// Whether others than its owner may give an inode another name, as with Linux'
// fs.protected_hardlinks: `accessible`, whether they may read and write it.
bool is_safe_to_link(const Attributes& inode, bool accessible);

// --- creation

// A new inode's owner, mode and access lists.
struct Inherited {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<ExtendedAttribute> extended;
};
// In a directory that may have a default list. The group is the process', or the directory's if
// that is set-group-ID. The mode is restricted by the default list, or else by the file creation
// mask.
Inherited inherit(const Credentials& credentials, const Attributes& directory,
                  const std::optional<AccessList>& default_list, std::uint32_t mode,
                  std::uint32_t umask);

// --- changes of attributes

// An AttributeChange with the value that it refers to; used where it is made.
class PreparedChange {
 public:
  PreparedChange() = default;
  PreparedChange(PreparedChange&&) = default;
  PreparedChange& operator=(PreparedChange&&) = default;

  AttributeChange change{};
  // Sets or removes the access list with it.
  void set_access_list(const std::optional<AccessList>& list);

 private:
  std::vector<std::byte> value_;
};

// chmod: operation_not_permitted unless the process owns the inode. Its access list, if it has one,
// follows; set-group-ID of a group that the process is not in is left out.
Result<PreparedChange> change_mode(const Credentials& credentials, const Attributes& inode,
                                   const std::optional<AccessList>& list, std::uint32_t permissions,
                                   Timestamp now);
// chown, of what is given: set-user-ID and set-group-ID are cleared.
Result<PreparedChange> change_owner(const Credentials& credentials, const Attributes& inode,
                                    std::optional<std::uint32_t> uid,
                                    std::optional<std::uint32_t> gid, Timestamp now);
// Setting an access list (invalid_argument if it is not valid), or removing it with nullopt; the
// mode follows. One that says no more than a mode is not stored.
Result<PreparedChange> change_access_list(const Credentials& credentials, const Attributes& inode,
                                          std::optional<AccessList> list, Timestamp now);
// Whether data that a process writes or truncates clears set-user-ID and set-group-ID.
inline bool write_clears_set_id(const Credentials& credentials) {
  return !credentials.is_privileged();
}
// The permissions after that, where WriteOptions::clear_set_id does not do all: set-group-ID
// without execution goes, too, unless the writer is in the group.
std::optional<std::uint32_t> permissions_after_write(const Credentials& credentials,
                                                     const Attributes& inode);

// Whether a read moves `accessed`, as with Linux' relatime: if it is not behind `modified` and
// `changed`, or a day old.
bool updates_accessed(const Attributes& inode, Timestamp now);

// --- extended attributes

// Whether a process may read or write one: `user.` of regular files and directories by their
// permissions; in sticky directories their owner alone writes. `trusted.` privileged processes
// alone, `security.` is readable by all. Other names: operation_not_supported. `accessible`:
// whether permissions allow it. Access lists are checked by change_access_list().
enum class AttributeAccess : std::uint8_t { read, write };
std::errc check_extended(const Credentials& credentials, const Attributes& inode,
                         std::string_view name, AttributeAccess access, bool accessible);

}  // namespace perdura::fs
