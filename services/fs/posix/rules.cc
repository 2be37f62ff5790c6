#include "services/fs/posix/rules.h"

namespace perdura::fs {
namespace {

constexpr std::uint32_t kPermissions = 0777;

bool in_group_or_privileged(const Credentials& credentials, std::uint32_t gid) {
  return credentials.is_in(gid) || credentials.is_privileged();
}

bool has_bits(std::uint32_t mode, std::uint32_t bits) { return (mode & bits) == bits; }

}  // namespace

bool may_access(const Credentials& credentials, const Attributes& inode,
                const std::optional<AccessList>& list, std::uint32_t wanted) {
  if (credentials.is_privileged()) {
    return inode.is_directory() || (wanted & kMayExecute) == 0 || (inode.mode & 0111) != 0;
  }
  const auto grants = [&](std::uint32_t permissions) { return (permissions & wanted) == wanted; };
  if (credentials.uid == inode.uid) return grants(inode.mode >> 6);
  // Like Linux, which ignores the list if its mask is empty.
  if (list && (inode.mode & S_IRWXG) != 0) {
    return list->permits(credentials, inode.uid, inode.gid, wanted);
  }
  return grants(credentials.is_in(inode.gid) ? inode.mode >> 3 : inode.mode);
}

bool is_protected(const Credentials& credentials, const Attributes& directory,
                  const Attributes& inode) {
  return (directory.mode & S_ISVTX) != 0 && !credentials.owns(inode.uid) &&
         !credentials.owns(directory.uid);
}

bool is_safe_to_link(const Attributes& inode, bool accessible) {
  return inode.is_regular() && (inode.mode & S_ISUID) == 0 &&
         !has_bits(inode.mode, S_ISGID | S_IXGRP) && accessible;
}

Inherited inherit(const Credentials& credentials, const Attributes& directory,
                  const std::optional<AccessList>& default_list, std::uint32_t mode,
                  std::uint32_t umask) {
  Inherited made{.mode = mode, .uid = credentials.uid, .gid = credentials.gid, .extended = {}};
  const bool is_directory = (mode & S_IFMT) == S_IFDIR;
  if ((directory.mode & S_ISGID) != 0) {
    made.gid = directory.gid;
    if (is_directory) {
      made.mode |= S_ISGID;
    } else if (has_bits(mode, S_ISGID | S_IXGRP) &&
               !in_group_or_privileged(credentials, directory.gid)) {
      made.mode &= ~static_cast<std::uint32_t>(S_ISGID);
    }
  }
  if ((mode & S_IFMT) == S_IFLNK) return made;
  if (!default_list) {
    made.mode &= ~(umask & kPermissions);
    return made;
  }
  AccessList own = *default_list;
  own.restrict_to(mode & kPermissions);
  made.mode = (made.mode & ~kPermissions) | own.permissions();
  if (!own.is_mode()) made.extended.push_back({std::string(kAccessList), own.format()});
  if (is_directory) {
    made.extended.push_back({std::string(kDefaultList), default_list->format()});
  }
  return made;
}

void PreparedChange::set_access_list(const std::optional<AccessList>& list) {
  change.extended = {.name = kAccessList, .value = {}};
  if (!list) return;
  value_ = list->format();
  change.extended->value = value_;
}

Result<PreparedChange> change_mode(const Credentials& credentials, const Attributes& inode,
                                   const std::optional<AccessList>& list, std::uint32_t permissions,
                                   Timestamp now) {
  if (!credentials.owns(inode.uid)) return tl::unexpected(std::errc::operation_not_permitted);
  if (!in_group_or_privileged(credentials, inode.gid)) {
    permissions &= ~static_cast<std::uint32_t>(S_ISGID);
  }
  PreparedChange prepared;
  prepared.change.permissions = permissions & 07777;
  prepared.change.changed = now;
  if (list) {
    AccessList changed = *list;
    changed.set_permissions(permissions & kPermissions);
    prepared.set_access_list(changed);
  }
  return prepared;
}

Result<PreparedChange> change_owner(const Credentials& credentials, const Attributes& inode,
                                    std::optional<std::uint32_t> uid,
                                    std::optional<std::uint32_t> gid, Timestamp now) {
  const bool is_owner = credentials.uid == inode.uid;
  const bool may_give = !uid || credentials.is_privileged() || (is_owner && *uid == inode.uid);
  const bool may_regroup = !gid || credentials.is_privileged() ||
                           (is_owner && (credentials.is_in(*gid) || *gid == inode.gid));
  if (!may_give || !may_regroup) return tl::unexpected(std::errc::operation_not_permitted);
  PreparedChange prepared;
  prepared.change = {.uid = uid, .gid = gid, .changed = now};
  if (inode.is_directory()) return prepared;
  std::uint32_t mode = inode.mode & 07777 & ~static_cast<std::uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0 || !in_group_or_privileged(credentials, inode.gid)) {
    mode &= ~static_cast<std::uint32_t>(S_ISGID);
  }
  if (mode == (inode.mode & 07777)) return prepared;
  // Only the owner or a privileged process may change the mode, even if no id is given.
  if (!credentials.owns(inode.uid)) return tl::unexpected(std::errc::operation_not_permitted);
  if (!in_group_or_privileged(credentials, gid.value_or(inode.gid))) {
    mode &= ~static_cast<std::uint32_t>(S_ISGID);
  }
  prepared.change.permissions = mode;
  return prepared;
}

Result<PreparedChange> change_access_list(const Credentials& credentials, const Attributes& inode,
                                          std::optional<AccessList> list, Timestamp now) {
  if (inode.is_symlink()) return tl::unexpected(std::errc::operation_not_supported);
  if (!credentials.owns(inode.uid)) return tl::unexpected(std::errc::operation_not_permitted);
  if (list && !list->is_valid()) return tl::unexpected(std::errc::invalid_argument);
  PreparedChange prepared;
  prepared.change.changed = now;
  if (list) {
    std::uint32_t mode = (inode.mode & 07000) | list->permissions();
    if (!in_group_or_privileged(credentials, inode.gid)) {
      mode &= ~static_cast<std::uint32_t>(S_ISGID);
    }
    prepared.change.permissions = mode;
    if (list->is_mode()) list.reset();
  }
  prepared.set_access_list(list);
  return prepared;
}

std::optional<std::uint32_t> permissions_after_write(const Credentials& credentials,
                                                     const Attributes& inode) {
  if (credentials.is_privileged() || !has_bits(inode.mode, S_ISGID) ||
      has_bits(inode.mode, S_IXGRP) || credentials.is_in(inode.gid)) {
    return std::nullopt;
  }
  return inode.mode & 07777 & ~static_cast<std::uint32_t>(S_ISGID | S_ISUID);
}

bool updates_accessed(const Attributes& inode, Timestamp now) {
  constexpr std::int64_t kDay = 24 * 60 * 60;
  return inode.accessed <= inode.modified || inode.accessed <= inode.changed ||
         now.seconds - inode.accessed.seconds >= kDay;
}

std::errc check_extended(const Credentials& credentials, const Attributes& inode,
                         std::string_view name, AttributeAccess access, bool accessible,
                         bool on_sockets) {
  const bool writes = access == AttributeAccess::write;
  const std::errc hidden =
      writes ? std::errc::operation_not_permitted : std::errc::no_message_available;
  if (name.starts_with("security.")) {
    if (writes && !credentials.is_privileged()) return std::errc::operation_not_permitted;
  } else if (name.starts_with("trusted.")) {
    if (!credentials.is_privileged()) return hidden;
  } else if (name.starts_with("system.")) {
    return std::errc::operation_not_supported;
  } else if (name.starts_with("user.")) {
    const bool allows = inode.is_regular() || inode.is_directory() ||
                        (on_sockets && (inode.mode & S_IFMT) == S_IFSOCK);
    if (!allows) return hidden;
    if (writes && inode.is_directory() && (inode.mode & S_ISVTX) != 0 &&
        !credentials.owns(inode.uid)) {
      return std::errc::operation_not_permitted;
    }
    if (!accessible) return std::errc::permission_denied;
  } else {
    return accessible ? std::errc::operation_not_supported : std::errc::permission_denied;
  }
  return name.ends_with('.') && name.find('.') == name.size() - 1 ? std::errc::invalid_argument
                                                                  : std::errc{};
}

}  // namespace perdura::fs
