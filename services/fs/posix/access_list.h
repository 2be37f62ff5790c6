// Access control lists of POSIX (draft 1003.1e), as Linux stores them: the extended attributes
// system.posix_acl_access of any file, and system.posix_acl_default of a directory, which files
// created in the directory inherit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "services/fs/fs.h"
#include "services/fs/posix/credentials.h"

namespace perdura::fs {

inline constexpr std::string_view kAccessList = "system.posix_acl_access";
inline constexpr std::string_view kDefaultList = "system.posix_acl_default";

// Permission bits, as in each digit of a mode.
inline constexpr std::uint32_t kMayRead = 4;
inline constexpr std::uint32_t kMayWrite = 2;
inline constexpr std::uint32_t kMayExecute = 1;

struct AccessList {
  enum class Tag : std::uint16_t {
    owner = 0x01,
    user = 0x02,
    owning_group = 0x04,
    group = 0x08,
    mask = 0x10,
    other = 0x20,
  };
  struct AclEntry {
    Tag tag{};
    std::uint16_t permissions = 0;
    std::uint32_t id = 0;  // only of a user or a group
    bool operator==(const AclEntry&) const = default;
  };
  std::vector<AclEntry> entries;  // in the order of the tags

  // Parses the attribute's value. An empty value or list is no list: nullopt.
  // operation_not_supported for another version of the format, invalid_argument for a malformed
  // value.
  static Result<std::optional<AccessList>> parse(std::span<const std::byte> value);
  // False if entries are out of order, if a required entry is missing or there twice, or if there
  // are entries of users or groups but no mask. All functions below need a valid list.
  bool is_valid() const;
  std::vector<std::byte> format() const;

  // True if the list says no more than a mode does.
  bool is_mode() const;
  // The nine permission bits of the mode of a file with this list. The group's bits are those of
  // the mask if there is one.
  std::uint32_t permissions() const;
  // Changes the list as chmod does.
  void set_permissions(std::uint32_t permissions);
  // Turns a default list into the access list of a file that is created with these permissions.
  void restrict_to(std::uint32_t permissions);
  // `wanted` is a combination of kMayRead, kMayWrite and kMayExecute. Does not consider privileges.
  bool permits(const Credentials& credentials, std::uint32_t owner, std::uint32_t group,
               std::uint32_t wanted) const;

  bool operator==(const AccessList&) const = default;

 private:
  AclEntry* find(Tag tag);
  const AclEntry* find(Tag tag) const { return const_cast<AccessList*>(this)->find(tag); }
  // The entry that the group's bits of a mode stand for.
  AclEntry& group_class();
};

}  // namespace perdura::fs
