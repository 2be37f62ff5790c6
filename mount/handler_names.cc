#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "mount/answer.h"
#include "mount/locks.h"
#include "services/fs/posix/rules.h"

namespace perdura::mount {

namespace {

// "." and ".." come before the entries of a directory.
constexpr std::uint64_t kBehindItself = 1;
constexpr std::uint64_t kBehindParent = 2;

constexpr std::size_t kUsualName = 16;  // to estimate how many entries fit in an answer

template <class Part>
void append(std::vector<std::byte>& bytes, const Part& part) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&part);
  bytes.insert(bytes.end(), begin, begin + sizeof part);
}

// The creator's credentials. Supplementary groups are only needed if set-group-ID might be cleared.
fs::Credentials creator(uid_t uid, gid_t gid, pid_t thread, std::uint32_t mode) {
  const bool of_group = (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  return of_group ? credentials_of(uid, gid, thread) : fs::Credentials{.uid = uid, .gid = gid};
}

fs::Credentials creator(fuse_req_t request, std::uint32_t mode) {
  const fuse_ctx& caller = *fuse_req_ctx(request);
  return creator(caller.uid, caller.gid, caller.pid, mode);
}

}  // namespace

Task<fs::Result<void>> Handler::hold(const fs::Attributes& found) {
  const fs::Result<void> held = co_await session_.hold(found.inode);
  if (!held || !is_shared_) co_return held;
  // Its number may have been given to another inode before it was held.
  const fs::Result<fs::Attributes> now = co_await session_.attributes(found.inode);
  if (!now || now->generation == found.generation) co_return held;
  co_await session_.release(found.inode);
  co_return tl::unexpected(std::errc::no_such_file_or_directory);
}

Task<> Handler::answer_entry(fuse_req_t request, fs::Attributes found) {
  const fs::Result<void> held = co_await hold(found);
  if (held) {
    co_await answer_held(request, found);
  } else {
    fail(request, held.error());
  }
}

Task<> Handler::answer_held(fuse_req_t request, fs::Attributes found) {
  const fuse_entry_param entry = entry_of(found, remembered());
  if (fuse_reply_entry(request, &entry) != 0) co_await session_.release(found.inode);
}

Task<> Handler::answer_result(fuse_req_t request, Task<fs::Result<void>> work) {
  const fs::Result<void> result = co_await std::move(work);
  fuse_reply_err(request, result ? 0 : static_cast<int>(result.error()));
}

// Servers of network file systems look for an inode by its number and generation ("."), and for the
// directory that contains it ("..").
Task<fs::Result<fs::Attributes>> Handler::find(fs::InodeNumber directory, std::string_view name) {
  if (name == ".") co_return co_await session_.attributes(directory);
  if (name == "..") {
    const fs::Result<fs::InodeNumber> parent = co_await session_.parent(directory);
    if (!parent) co_return tl::unexpected(parent.error());
    co_return co_await session_.attributes(*parent);
  }
  co_return co_await session_.look_up(directory, name);
}

Task<fs::Result<fs::Attributes>> Handler::find_held(fs::InodeNumber directory,
                                                    std::string_view name) {
  for (;;) {
    fs::Result<fs::Attributes> found = co_await find(directory, name);
    if (!found) co_return found;
    const fs::Result<void> held = co_await hold(*found);
    if (held) co_return found;
    // Others have removed what had the name; by now something else may have it.
    const bool is_gone = held.error() == std::errc::no_such_file_or_directory;
    if (!is_shared_ || !is_gone) co_return tl::unexpected(held.error());
  }
}

Task<> Handler::look_up(fuse_req_t request, fs::InodeNumber directory, std::string_view name) {
  fs::Result<fs::Attributes> found = co_await find_held(directory, name);
  if (found) {
    if (name != "." && name != "..") note_name(directory, name, found->inode);
    co_await answer_held(request, *found);
  } else if (found.error() == std::errc::no_such_file_or_directory && name != "." && name != "..") {
    // The kernel may also remember that the name does not exist.
    fuse_entry_param none{};
    none.entry_timeout = remembered();
    fuse_reply_entry(request, &none);
  } else {
    const bool stale = name == "." || name == "..";
    fuse_reply_err(request, stale ? ESTALE : static_cast<int>(found.error()));
  }
}

Task<> Handler::forget(fuse_req_t request, std::vector<fuse_forget_data> inodes) {
  releases_.begin();
  for (const fuse_forget_data& each : inodes) {
    if (each.ino == FUSE_ROOT_ID) continue;  // never looked up, always there
    if (locks_ != nullptr) locks_->forget(fs::InodeNumber{each.ino});
    co_await expect_work_on(fs::InodeNumber{each.ino});
    co_await session_.release(fs::InodeNumber{each.ino}, each.nlookup);
  }
  releases_.end();
  fuse_reply_none(request);
}

Task<fs::Result<fs::Attributes>> Handler::make(fs::Credentials caller, fs::InodeNumber directory,
                                               std::string_view name, fs::NewInode inode,
                                               std::uint32_t umask) {
  const fs::Result<fs::Attributes> parent = co_await session_.attributes(directory);
  if (!parent) co_return tl::unexpected(parent.error());
  const fs::Result<std::optional<fs::AccessList>> list =
      co_await access_list(directory, fs::kDefaultList);
  if (!list) co_return tl::unexpected(list.error());
  const fs::Inherited inherited = inherit(caller, *parent, *list, inode.mode, umask);
  inode.mode = inherited.mode;
  inode.uid = inherited.uid;
  inode.gid = inherited.gid;
  inode.extended = inherited.extended;
  const fs::Timestamp now = time_now();
  co_return co_await with_space([&] {
    return name.empty() ? session_.create_unnamed(inode, now)
                        : session_.create(directory, name, inode, now);
  });
}

Task<> Handler::create(fuse_req_t request, fs::InodeNumber directory, std::string_view name,
                       fs::NewInode inode) {
  const fs::Result<fs::Attributes> made = co_await make(creator(request, inode.mode), directory,
                                                        name, inode, fuse_req_ctx(request)->umask);
  if (made) {
    note_name(directory, name, made->inode);
    co_await answer_entry(request, *made);
  } else {
    fail(request, made.error());
  }
}

Task<> Handler::create_open(fuse_req_t request, fs::InodeNumber directory, std::string_view name,
                            std::uint32_t mode, fuse_file_info file) {
  const fs::NewInode inode{.mode = S_IFREG | (mode & 07777)};
  const fs::Result<fs::Attributes> made =
      co_await make(creator(request, mode), directory, name, inode, fuse_req_ctx(request)->umask);
  const bool exists = !made && made.error() == std::errc::file_exists;
  if (is_shared_ && exists && (file.flags & O_EXCL) == 0) {
    // Others have created it since the kernel looked. This error makes the kernel look again.
    fuse_reply_err(request, ESTALE);
    co_return;
  }
  if (!made) {
    fail(request, made.error());
    co_return;
  }
  const fs::Result<void> held = co_await hold(*made);
  if (!held) {
    const bool is_gone = held.error() == std::errc::no_such_file_or_directory;
    fuse_reply_err(request, is_shared_ && is_gone ? ESTALE : static_cast<int>(held.error()));
    co_return;
  }
  note_name(directory, name, made->inode);
  note_created(*made);
  file.keep_cache = is_uncached() ? 0 : 1;
  file.direct_io = is_uncached() ? 1 : 0;
  const fuse_entry_param entry = entry_of(*made, remembered());
  if (fuse_reply_create(request, &entry, &file) != 0) co_await session_.release(made->inode);
}

Task<> Handler::create_unnamed(fuse_in_header request, fuse_create_in arguments) {
  const fs::NewInode inode{.mode = S_IFREG | (arguments.mode & 07777)};
  const fs::Credentials caller =
      creator(request.uid, request.gid, static_cast<pid_t>(request.pid), arguments.mode);
  const fs::Result<fs::Attributes> made =
      co_await make(caller, fs::InodeNumber{request.nodeid}, {}, inode, arguments.umask);
  if (!made) {
    channel_.answer(request, static_cast<int>(made.error()), {});
    co_return;
  }
  fuse_entry_out entry{};
  entry.nodeid = static_cast<std::uint64_t>(made->inode);
  entry.generation = made->generation;
  entry.entry_valid = entry.attr_valid = static_cast<std::uint64_t>(remembered());
  fuse_attr& attributes = entry.attr;
  attributes.ino = entry.nodeid;
  attributes.mode = made->mode;
  attributes.nlink = made->links;
  attributes.uid = made->uid;
  attributes.gid = made->gid;
  attributes.blksize = fs::kBlock;
  attributes.blocks = made->blocks;
  attributes.atime = static_cast<std::uint64_t>(made->accessed.seconds);
  attributes.mtime = static_cast<std::uint64_t>(made->modified.seconds);
  attributes.ctime = static_cast<std::uint64_t>(made->changed.seconds);
  attributes.atimensec = made->accessed.nanoseconds;
  attributes.mtimensec = made->modified.nanoseconds;
  attributes.ctimensec = made->changed.nanoseconds;
  note_created(*made);
  fuse_open_out file{};
  file.open_flags = is_uncached() ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE;
  std::vector<std::byte> bytes;
  append(bytes, entry);
  append(bytes, file);
  if (!channel_.answer(request, 0, bytes)) co_await session_.release(made->inode);
}

Task<> Handler::link(fuse_req_t request, fs::InodeNumber inode, fs::InodeNumber directory,
                     std::string_view name) {
  const fs::Timestamp now = time_now();
  const fs::Result<fs::Attributes> linked =
      co_await with_space([&] { return session_.link(inode, directory, name, now); });
  if (linked) {
    note_name(directory, name, linked->inode);
    co_await answer_entry(request, *linked);
  } else {
    fail(request, linked.error());
  }
}

Task<> Handler::unlink(fuse_req_t request, fs::InodeNumber directory, std::string_view name) {
  return answer_result(request, session_.unlink(directory, name, time_now()));
}

Task<> Handler::remove_directory(fuse_req_t request, fs::InodeNumber directory,
                                 std::string_view name) {
  return answer_result(request, session_.remove_directory(directory, name, time_now()));
}

Task<> Handler::rename(fuse_req_t request, fs::InodeNumber from, std::string_view name,
                       fs::InodeNumber to, std::string_view new_name, unsigned flags) {
  fs::RenameMode mode = fs::RenameMode::replace;
  if (flags == RENAME_NOREPLACE) {
    mode = fs::RenameMode::keep;
  } else if (flags == RENAME_EXCHANGE) {
    mode = fs::RenameMode::exchange;
  } else if (flags != 0) {
    fuse_reply_err(request, EINVAL);
    co_return;
  }
  const fs::Timestamp now = time_now();
  const fs::Result<void> renamed =
      co_await with_space([&] { return session_.rename(from, name, to, new_name, mode, now); });
  if (renamed && is_traced()) recorder_->renamed(from, name, to, new_name, mode);
  fuse_reply_err(request, renamed ? 0 : static_cast<int>(renamed.error()));
}

Task<> Handler::read_link(fuse_req_t request, fs::InodeNumber inode) {
  const fs::Result<std::string> target = co_await session_.read_link(inode);
  if (!target) {
    fail(request, target.error());
    co_return;
  }
  co_await note_read(inode);
  fuse_reply_readlink(request, target->c_str());
}

Task<> Handler::open_directory(fuse_req_t request, fs::InodeNumber directory, fuse_file_info file) {
  const fs::Result<std::uint64_t> last = co_await session_.last_cookie(directory);
  if (!last) {
    fail(request, last.error());
    co_return;
  }
  file.fh = listings_.begin(*last);
  file.keep_cache = file.cache_readdir = is_shared_ ? 0 : 1;
  if (fuse_reply_open(request, &file) != 0) listings_.end(file.fh);
}

void Handler::close_directory(fuse_req_t request, const fuse_file_info& file) {
  listings_.end(file.fh);
  fuse_reply_err(request, 0);
}

Task<> Handler::entries(fuse_req_t request, fs::InodeNumber directory, std::size_t most,
                        std::uint64_t offset, bool with_attributes, std::uint64_t listing) {
  if (buffer_.size() < most) buffer_.resize(most);
  auto* const begin = reinterpret_cast<char*>(buffer_.data());
  std::size_t used = 0;
  // Returns false if the answer is full.
  const auto add = [&](const char* name, const fuse_entry_param& entry, std::uint64_t behind) {
    const std::size_t room = most - used;
    const auto next = static_cast<off_t>(behind);
    const std::size_t needs =
        with_attributes ? fuse_add_direntry_plus(request, begin + used, room, name, &entry, next)
                        : fuse_add_direntry(request, begin + used, room, name, &entry.attr, next);
    if (needs > room) return false;
    used += needs;
    return true;
  };
  // This is not a look-up of the two, so the kernel must see inode number 0.
  const auto add_dots = [&](const char* name, fs::InodeNumber inode, std::uint64_t behind) {
    fuse_entry_param entry{};
    entry.attr.st_ino = static_cast<ino_t>(inode);
    entry.attr.st_mode = S_IFDIR;
    return add(name, entry, behind);
  };
  if (offset == 0) {
    co_await note_read(directory);
    const fs::Result<std::uint64_t> now = co_await session_.last_cookie(directory);
    if (now) listings_.begin_again(listing, *now);
    add_dots(".", directory, kBehindItself);
  }
  if (offset < kBehindParent) {
    const fs::Result<fs::InodeNumber> parent = co_await session_.parent(directory);
    add_dots("..", parent ? *parent : directory, kBehindParent);
  }
  const std::size_t usual =
      (with_attributes ? sizeof(fuse_direntplus) : sizeof(fuse_dirent)) + kUsualName;
  std::uint64_t cookie = offset < kBehindParent ? 0 : offset - kBehindParent;
  const std::uint64_t last = listings_.last_cookie(listing);
  for (bool room = true; room && used < most;) {
    const std::size_t wanted = (most - used) / usual + 1;
    const fs::Result<std::vector<fs::DirectoryEntry>> found =
        co_await session_.entries(directory, cookie, wanted);
    if (!found) {
      if (used > 0) break;
      fail(request, found.error());
      co_return;
    }
    for (const fs::DirectoryEntry& each : *found) {
      room = each.cookie <= last;
      if (!room) break;
      fuse_entry_param entry{};
      entry.attr.st_ino = static_cast<ino_t>(each.inode);
      entry.attr.st_mode = each.type;
      if (with_attributes) {
        const fs::Result<fs::Attributes> attributes = co_await session_.attributes(each.inode);
        if (attributes) entry = entry_of(*attributes, remembered());
      }
      room = add(each.name.c_str(), entry, each.cookie + kBehindParent);
      if (!room) break;
      if (entry.ino != 0) {
        const fs::Result<void> held = co_await session_.hold(each.inode);
        if (!held) std::fputs("perdura: an inode with a name cannot be held\n", stderr);
      }
      cookie = each.cookie;
    }
    if (found->size() < wanted) break;
  }
  fuse_reply_buf(request, begin, used);
}

}  // namespace perdura::mount
