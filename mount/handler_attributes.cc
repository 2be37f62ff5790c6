#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "mount/answer.h"
#include "services/fs/posix/rules.h"

namespace perdura::mount {

namespace {

constexpr int kAll = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID |
                     FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME |
                     FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;

// The error for an extended attribute of a name that no attribute can have.
std::optional<std::errc> problem_with(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNamespaces{"user.", "trusted.", "security."};
  if (name == fs::kAccessList || name == fs::kDefaultList) return std::nullopt;
  for (const std::string_view each : kNamespaces) {
    if (name == each) return std::errc::invalid_argument;
    if (name.starts_with(each)) return std::nullopt;
  }
  return std::errc::operation_not_supported;
}

fs::Timestamp timestamp_of(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

// The permissions of a file after a change of owner.
std::uint32_t without_set_id(fuse_req_t request, const fs::Attributes& before) {
  std::uint32_t mode = before.mode & 07777 & ~static_cast<std::uint32_t>(S_ISUID);
  if ((mode & S_ISGID) == 0) return mode;
  const fs::Credentials caller = credentials_of(request);
  const bool keeps = (mode & S_IXGRP) == 0 && (caller.is_privileged() || caller.is_in(before.gid));
  return keeps ? mode : mode & ~static_cast<std::uint32_t>(S_ISGID);
}

}  // namespace

fs::Credentials credentials_of(uid_t uid, gid_t gid, pid_t thread) {
  fs::Credentials credentials{.uid = uid, .gid = gid};
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  constexpr std::string_view kGroups = "Groups:";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kGroups)) continue;
    std::istringstream groups(line.substr(kGroups.size()));
    for (std::uint32_t group = 0; groups >> group;) credentials.groups.push_back(group);
    break;
  }
  return credentials;
}

fs::Credentials credentials_of(fuse_req_t request) {
  const fuse_ctx& caller = *fuse_req_ctx(request);
  return credentials_of(caller.uid, caller.gid, caller.pid);
}

Task<> Handler::attributes(fuse_req_t request, fs::InodeNumber inode) {
  const fs::Result<fs::Attributes> found = co_await session_.attributes(inode);
  if (!found) {
    fail(request, found.error());
    co_return;
  }
  const struct stat answer = stat_of(*found);
  fuse_reply_attr(request, &answer, remembered());
}

Task<> Handler::set_attributes(fuse_req_t request, fs::InodeNumber inode, struct stat wanted,
                               int which, bool clear_set_id) {
  const auto given = [which](int attribute) { return (which & attribute) != 0; };
  const fs::Timestamp now = time_now();
  if (given(FUSE_SET_ATTR_SIZE)) {
    const fs::WriteOptions options = co_await write_options(request, inode, clear_set_id);
    const auto size = static_cast<Bytes>(wanted.st_size);
    co_await expect_work_on(inode);
    if (is_traced()) co_await note_file(inode);
    const fs::Result<void> done =
        co_await with_space([&] { return session_.truncate(inode, size, options); });
    if (!done) {
      fail(request, done.error());
      co_return;
    }
    note(fs::TraceKind::truncate, inode, size);
  }
  fs::PreparedChange prepared;
  fs::AttributeChange& change = prepared.change;
  if (given(FUSE_SET_ATTR_UID)) change.uid = wanted.st_uid;
  if (given(FUSE_SET_ATTR_GID)) change.gid = wanted.st_gid;
  if (given(FUSE_SET_ATTR_ATIME)) change.accessed = timestamp_of(wanted.st_atim);
  if (given(FUSE_SET_ATTR_MTIME)) change.modified = timestamp_of(wanted.st_mtim);
  if (given(FUSE_SET_ATTR_ATIME_NOW)) change.accessed = now;
  if (given(FUSE_SET_ATTR_MTIME_NOW)) change.modified = now;
  if ((which & kAll) == 0) {
    // A chown() of neither owner nor group; or a write that clears the set-id bits by a request of
    // its own, by a user who need not be the owner.
    const fs::Result<fs::Attributes> before = co_await session_.attributes(inode);
    if (!before) {
      fail(request, before.error());
      co_return;
    }
    fs::Result<fs::PreparedChange> owner =
        change_owner(credentials_of(request), *before, std::nullopt, std::nullopt, now);
    if (!owner || !owner->change.permissions) {
      co_await attributes(request, inode);
      co_return;
    }
    prepared = std::move(*owner);
  } else if (given(FUSE_SET_ATTR_MODE)) {
    change.permissions = wanted.st_mode & 07777;
    fs::Result<std::optional<fs::AccessList>> list = co_await access_list(inode, fs::kAccessList);
    if (list && *list) {
      (*list)->set_permissions(wanted.st_mode);
      prepared.set_access_list(*list);
    }
  } else if (clear_set_id && (change.uid || change.gid)) {
    const fs::Result<fs::Attributes> before = co_await session_.attributes(inode);
    if (before && !before->is_directory()) {
      change.permissions = without_set_id(request, *before);
    }
  }
  const bool any = change.permissions || change.uid || change.gid || change.accessed ||
                   change.modified || !given(FUSE_SET_ATTR_SIZE);
  if (!any) {
    co_await attributes(request, inode);
    co_return;
  }
  change.changed = now;
  const fs::Result<fs::Attributes> changed =
      co_await with_space([&] { return session_.change(inode, change); });
  if (!changed) {
    fail(request, changed.error());
    co_return;
  }
  const struct stat answer = stat_of(*changed);
  fuse_reply_attr(request, &answer, remembered());
}

Task<> Handler::extended(fuse_req_t request, fs::InodeNumber inode, std::string_view name,
                         std::size_t most) {
  if (const auto problem = problem_with(name)) {
    fail(request, *problem);
    co_return;
  }
  // While it waits for the answer, this keeps the kernel from remembering an access list.
  if (is_shared_ && (name == fs::kAccessList || name == fs::kDefaultList)) {
    channel_.forget_attributes(inode);
  }
  const fs::Result<std::vector<std::byte>> value = co_await session_.extended(inode, name);
  if (!value) {
    fail(request, value.error());
  } else if (most == 0) {
    fuse_reply_xattr(request, value->size());
  } else if (value->size() > most) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, reinterpret_cast<const char*>(value->data()), value->size());
  }
}

Task<> Handler::extended_names(fuse_req_t request, fs::InodeNumber inode, std::size_t most) {
  const fs::Result<std::vector<std::string>> names = co_await session_.extended_names(inode);
  if (!names) {
    fail(request, names.error());
    co_return;
  }
  std::string all;
  for (const std::string& name : *names) {
    // Only administrators see these.
    if (name.starts_with("trusted.") && fuse_req_ctx(request)->uid != 0) continue;
    all.append(name).push_back('\0');
  }
  if (most == 0) {
    fuse_reply_xattr(request, all.size());
  } else if (all.size() > most) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, all.data(), all.size());
  }
}

Task<> Handler::set_extended(fuse_req_t request, fs::InodeNumber inode, std::string_view name,
                             std::span<const std::byte> value, int flags) {
  if (const auto problem = problem_with(name)) {
    fail(request, *problem);
    co_return;
  }
  const fs::Timestamp now = time_now();
  if (name == fs::kAccessList) {
    co_await set_access_list(request, inode, value, now);
    co_return;
  }
  const auto mode = flags == (XATTR_CREATE | XATTR_REPLACE) ? fs::AttributeMode::neither
                    : flags == XATTR_CREATE                 ? fs::AttributeMode::create
                    : flags == XATTR_REPLACE                ? fs::AttributeMode::replace
                                                            : fs::AttributeMode::create_or_replace;
  const fs::Result<void> done =
      co_await with_space([&] { return session_.set_extended(inode, name, value, mode, now); });
  fuse_reply_err(request, done ? 0 : static_cast<int>(done.error()));
}

// Sets an access list. It says the same as the permissions, so both change at once.
Task<> Handler::set_access_list(fuse_req_t request, fs::InodeNumber inode,
                                std::span<const std::byte> value, fs::Timestamp now) {
  const fs::Result<fs::Attributes> before = co_await session_.attributes(inode);
  const fs::Result<std::optional<fs::AccessList>> list = fs::AccessList::parse(value);
  if (!before || !list) {
    fail(request, before ? list.error() : before.error());
    co_return;
  }
  const fs::Result<fs::PreparedChange> prepared =
      change_access_list(credentials_of(request), *before, *list, now);
  if (!prepared) {
    fail(request, prepared.error());
    co_return;
  }
  const fs::Result<fs::Attributes> changed =
      co_await with_space([&] { return session_.change(inode, prepared->change); });
  fuse_reply_err(request, changed ? 0 : static_cast<int>(changed.error()));
}

// Returns nothing if there is no list.
Task<fs::Result<std::optional<fs::AccessList>>> Handler::access_list(fs::InodeNumber inode,
                                                                     std::string_view name) {
  const fs::Result<std::vector<std::byte>> value = co_await session_.extended(inode, name);
  if (value) co_return fs::AccessList::parse(*value);
  if (value.error() == std::errc::no_message_available) co_return std::optional<fs::AccessList>();
  co_return tl::unexpected(value.error());
}

Task<> Handler::remove_extended(fuse_req_t request, fs::InodeNumber inode, std::string_view name) {
  if (const auto problem = problem_with(name)) {
    fail(request, *problem);
    co_return;
  }
  const fs::Result<void> done = co_await session_.remove_extended(inode, name, time_now());
  // Removing an access list that does not exist succeeds.
  const bool is_list = name == fs::kAccessList || name == fs::kDefaultList;
  const bool was_none = !done && done.error() == std::errc::no_message_available && is_list;
  fuse_reply_err(request, done || was_none ? 0 : static_cast<int>(done.error()));
}

Task<> Handler::statistics(fuse_req_t request) {
  if (releases_.are_under_way()) co_await releases_end();
  const fs::Result<fs::Statistics> found = co_await session_.statistics();
  if (!found) {
    fail(request, found.error());
    co_return;
  }
  struct statvfs answer {};
  answer.f_bsize = answer.f_frsize = fs::kBlock;
  answer.f_blocks = found->capacity / fs::kBlock;
  answer.f_bfree = answer.f_bavail = found->free / fs::kBlock;
  answer.f_files = found->inodes;
  answer.f_ffree = answer.f_favail = found->free_inodes;
  answer.f_namemax = fs::kLongestName;
  fuse_reply_statfs(request, &answer);
}

}  // namespace perdura::mount
