// Access control lists of POSIX (draft 1003.1e), as Linux has them: the extended attributes
// system.posix_acl_access of any file, and system.posix_acl_default of a directory, which what is
// created in it inherits.
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

// Permissions, as in each digit of a mode.
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
  struct Entry {
    Tag tag{};
    std::uint16_t permissions = 0;
    std::uint32_t id = 0;  // of a user or a group
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> entries;  // in the order of the tags

  // From the attribute's value. An empty list, or no value, is none: nullopt.
  // operation_not_supported for another version of the format, invalid_argument for what does not
  // follow it.
  static Result<std::optional<AccessList>> parse(std::span<const std::byte> value);
  // False if entries are out of order, if one that must be there is missing or there twice, or if
  // users or groups have no mask. All below is of valid lists.
  bool is_valid() const;
  std::vector<std::byte> format() const;

  // Whether it says no more than a mode.
  bool is_mode() const;
  // The nine bits of a mode that a file with it has: the group's are those of the mask if there is
  // one.
  std::uint32_t permissions() const;
  // What chmod does to it.
  void set_permissions(std::uint32_t permissions);
  // What a default list becomes as the access list of a file that is created with a mode.
  void restrict_to(std::uint32_t permissions);
  // `wanted`: some of kMayRead, kMayWrite and kMayExecute. Without privileges.
  bool permits(const Credentials& credentials, std::uint32_t owner, std::uint32_t group,
               std::uint32_t wanted) const;

  bool operator==(const AccessList&) const = default;

 private:
  Entry* find(Tag tag);
  const Entry* find(Tag tag) const { return const_cast<AccessList*>(this)->find(tag); }
  // The entry that the group's bits of a mode stand for.
  Entry& group_class();
};

}  // namespace perdura::fs
