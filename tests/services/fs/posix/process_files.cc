// The operations of a process on descriptors.
#include <algorithm>

#include "tests/services/fs/posix/look_up.h"
#include "tests/services/fs/posix/process.h"

namespace perdura::fs::test {
namespace {

constexpr int kUnnamed = O_TMPFILE & ~O_DIRECTORY;
constexpr std::size_t kEntriesAhead = 32;

// The first two positions of a directory are "." and "..", which entries() does not return.
constexpr std::uint64_t kBehindDots = 2;

bool has_flags(int flags, int bits) { return (flags & bits) == bits; }

// The permissions that an open() needs.
std::uint32_t wanted_by(int flags) {
  std::uint32_t wanted = 0;
  if ((flags & O_ACCMODE) != O_WRONLY) wanted |= kMayRead;
  if ((flags & O_ACCMODE) != O_RDONLY || has_flags(flags, O_TRUNC)) wanted |= kMayWrite;
  return wanted;
}

// Converts the signed offset of a system call; nullopt if it is negative.
std::optional<Bytes> as_offset(std::int64_t offset) {
  return offset < 0 ? std::nullopt : std::optional(static_cast<Bytes>(offset));
}

}  // namespace

bool Process::OpenFile::is_open_for(std::uint32_t wanted) const {
  if (has_flags(flags, O_PATH)) return false;
  const int mode = flags & O_ACCMODE;
  return ((wanted & kMayRead) == 0 || mode != O_WRONLY) &&
         ((wanted & kMayWrite) == 0 || mode != O_RDONLY);
}

// --- open

Task<Result<int>> Process::open(std::string_view path, int flags, mode_t mode) {
  if (has_flags(flags, O_PATH)) flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
  if (has_flags(flags, O_CREAT | O_DIRECTORY))
    co_return tl::unexpected(std::errc::invalid_argument);
  Result<Attributes> opened = tl::unexpected(std::errc::invalid_argument);
  if (has_flags(flags, kUnnamed)) {
    if (has_flags(flags, O_TMPFILE) && (wanted_by(flags) & kMayWrite) != 0) {
      opened = co_await open_unnamed(path, flags, mode);
    }
  } else {
    opened = co_await open_path(path, flags, mode);
  }
  if (!opened) co_return tl::unexpected(opened.error());
  auto file = std::make_shared<OpenFile>();
  file->inode = opened->inode;
  file->type = opened->mode & S_IFMT;
  file->flags = flags;
  file->is_linkable = has_flags(flags, O_TMPFILE) && !has_flags(flags, O_EXCL);
  co_return add_descriptor(std::move(file));
}

Task<Result<Attributes>> Process::open_unnamed(std::string_view path, int flags, mode_t mode) {
  const Result<Attributes> directory = co_await find(path, !has_flags(flags, O_NOFOLLOW));
  if (!directory) co_return directory;
  Result<Attributes> made = tl::unexpected(std::errc::not_a_directory);
  if (directory->is_directory()) {
    const bool writable = co_await may(*directory, kMayWrite | kMayExecute);
    if (writable) {
      const std::optional<AccessList> defaults = co_await list_of(*directory, kDefaultList);
      const Inherited owned =
          inherit(credentials, *directory, defaults, S_IFREG | (mode & 07777), options.umask);
      const NewInode inode{
          .mode = owned.mode, .uid = owned.uid, .gid = owned.gid, .extended = owned.extended};
      made = co_await session_.create_unnamed(inode, now());
    } else {
      made = tl::unexpected(std::errc::permission_denied);
    }
  }
  co_await session_.release(directory->inode);
  co_return made;
}

Task<Result<Attributes>> Process::open_path(std::string_view path, int flags, mode_t mode) {
  const bool creates = has_flags(flags, O_CREAT);
  const bool exclusive = has_flags(flags, O_CREAT | O_EXCL);
  const bool follows = !has_flags(flags, O_NOFOLLOW) && !exclusive;
  Result<Walk> walk = co_await begin(path);
  if (!walk) co_return tl::unexpected(walk.error());
  while (true) {
    const Result<PathEnd> end = co_await this->walk(*walk);
    if (!end) co_return tl::unexpected(end.error());
    const Attributes& directory = end->directory;
    std::errc error{};
    Result<Attributes> found = tl::unexpected(std::errc::is_a_directory);
    if (!creates || !end->slash || !end->is_normal) found = co_await find_at(*end);
    if (!found && creates && found.error() == std::errc::no_such_file_or_directory &&
        end->is_normal && directory.links > 0) {
      const bool writable = co_await may(directory, kMayWrite | kMayExecute);
      if (!writable) {
        found = tl::unexpected(std::errc::permission_denied);
      } else {
        Result<Attributes> made = co_await make(*end, S_IFREG | (mode & 07777), 0, {});
        if (made) made = co_await hold_found(session_, *made);
        if (!made && made.error() == std::errc::file_exists) {
          // Another process was faster. Start again from here.
          walk->at = directory;
          walk->rest = end->name;
          continue;
        }
        // The creator of a file may use it whatever its mode.
        co_await session_.release(directory.inode);
        co_return made;
      }
    }
    if (!found) {
      co_await session_.release(directory.inode);
      co_return found;
    }
    if (found->is_symlink() && (follows || end->slash)) {
      const std::string_view behind = end->slash ? "/" : "";
      const Result<void> followed = co_await follow(*walk, directory, found->inode, behind);
      co_await session_.release(found->inode);
      if (followed) continue;
      co_await session_.release(directory.inode);
      co_return tl::unexpected(followed.error());
    }
    co_await session_.release(directory.inode);
    if (exclusive) {
      error = std::errc::file_exists;
    } else if (creates && found->is_directory()) {
      error = std::errc::is_a_directory;
    } else if ((has_flags(flags, O_DIRECTORY) || end->slash) && !found->is_directory()) {
      error = std::errc::not_a_directory;
    } else if (!has_flags(flags, O_PATH)) {
      const std::optional<std::errc> refused = co_await why_not_open(*found, flags);
      if (refused) error = *refused;
    }
    if (error == std::errc{} && has_flags(flags, O_TRUNC) && found->is_regular()) {
      const Result<WriteOptions> with = co_await before_write(found->inode);
      Result<void> cut = tl::unexpected(std::errc::no_such_file_or_directory);
      if (with) cut = co_await session_.truncate(found->inode, 0, *with);
      if (!cut) error = cut.error();
    }
    if (error == std::errc{}) co_return found;
    co_await session_.release(found->inode);
    co_return tl::unexpected(error);
  }
}

Task<std::optional<std::errc>> Process::why_not_open(const Attributes& inode, int flags) {
  const std::uint32_t wanted = wanted_by(flags);
  if (inode.is_symlink()) co_return std::errc::too_many_symbolic_link_levels;
  if (inode.is_directory() && (wanted & kMayWrite) != 0) co_return std::errc::is_a_directory;
  const bool permitted = co_await may(inode, wanted);
  if (!permitted) co_return std::errc::permission_denied;
  if (has_flags(flags, O_NOATIME) && !credentials.owns(inode.uid)) {
    co_return std::errc::operation_not_permitted;
  }
  if (inode.is(S_IFSOCK)) co_return std::errc::no_such_device_or_address;
  if (!inode.is_regular() && !inode.is_directory()) co_return std::errc::operation_not_supported;
  co_return std::nullopt;
}

// --- data

// Linux returns EINVAL for ranges that end after the largest offset.
Task<Result<Bytes>> Process::read_at(OpenFile& file, std::span<std::byte> into, Bytes offset) {
  if (into.size() > kLargestFile - offset) co_return tl::unexpected(std::errc::invalid_argument);
  if (file.type == S_IFDIR) co_return tl::unexpected(std::errc::is_a_directory);
  const Result<Bytes> read = co_await session_.read(file.inode, offset, into);
  if (read && !into.empty() && !has_flags(file.flags, O_NOATIME)) {
    const Result<Attributes> attributes = co_await session_.attributes(file.inode);
    if (attributes) co_await note_access(*attributes);
  }
  co_return read;
}

Task<Result<Bytes>> Process::read(int descriptor, std::span<std::byte> into) {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (!(*file)->is_open_for(kMayRead)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  const Result<Bytes> read = co_await read_at(**file, into, (*file)->offset);
  if (read) (*file)->offset += *read;
  co_return read;
}

Task<Result<Bytes>> Process::pread(int descriptor, std::span<std::byte> into, std::int64_t offset) {
  const std::optional<Bytes> at = as_offset(offset);
  if (!at) co_return tl::unexpected(std::errc::invalid_argument);
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (!(*file)->is_open_for(kMayRead)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  co_return co_await read_at(**file, into, *at);
}

Task<Result<WriteOptions>> Process::before_write(InodeNumber inode) {
  if (write_clears_set_id(credentials)) {
    const Result<Attributes> attributes = co_await session_.attributes(inode);
    if (!attributes) co_return tl::unexpected(attributes.error());
    const auto permissions = permissions_after_write(credentials, *attributes);
    if (permissions) {
      const AttributeChange change{.permissions = permissions, .changed = now()};
      co_await session_.change(inode, change);
    }
  }
  co_return WriteOptions{.now = now(), .clear_set_id = write_clears_set_id(credentials)};
}

Task<Result<Process::Written>> Process::append_to(OpenFile& file, std::span<const std::byte> data,
                                                  const WriteOptions& with) {
  while (true) {
    const Result<Bytes> at = co_await session_.append(file.inode, data, with);
    if (at) co_return Written{.bytes = data.size(), .end = *at + data.size()};
    if (at.error() != std::errc::file_too_large) co_return tl::unexpected(at.error());
    // Write as much as there is room for.
    const Result<Attributes> attributes = co_await session_.attributes(file.inode);
    if (!attributes) co_return tl::unexpected(attributes.error());
    const Bytes room = kLargestFile - attributes->size;
    if (room == 0) co_return tl::unexpected(at.error());
    data = data.first(std::min<Bytes>(data.size(), room));
  }
}

// With O_APPEND, writes at the end whatever the offset.
Task<Result<Process::Written>> Process::write_at(OpenFile& file, std::span<const std::byte> data,
                                                 Bytes offset) {
  if (data.empty()) co_return Written{.bytes = 0, .end = offset};
  if (data.size() > kLargestFile - offset) co_return tl::unexpected(std::errc::invalid_argument);
  const Result<WriteOptions> with = co_await before_write(file.inode);
  if (!with) co_return tl::unexpected(with.error());
  if (has_flags(file.flags, O_APPEND)) co_return co_await append_to(file, data, *with);
  const Result<void> written = co_await session_.write(file.inode, offset, data, *with);
  if (!written) co_return tl::unexpected(written.error());
  co_return Written{.bytes = data.size(), .end = offset + data.size()};
}

Task<Result<Bytes>> Process::write(int descriptor, std::span<const std::byte> data) {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (!(*file)->is_open_for(kMayWrite)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  const Result<Written> written = co_await write_at(**file, data, (*file)->offset);
  if (!written) co_return tl::unexpected(written.error());
  (*file)->offset = written->end;
  co_return written->bytes;
}

Task<Result<Bytes>> Process::pwrite(int descriptor, std::span<const std::byte> data,
                                    std::int64_t offset) {
  const std::optional<Bytes> at = as_offset(offset);
  if (!at) co_return tl::unexpected(std::errc::invalid_argument);
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (!(*file)->is_open_for(kMayWrite)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  const Result<Written> written = co_await write_at(**file, data, *at);
  if (!written) co_return tl::unexpected(written.error());
  co_return written->bytes;
}

Task<Result<Bytes>> Process::lseek(int descriptor, std::int64_t offset, int whence) {
  const Result<OpenFile*> found = find_open(descriptor);
  if (!found) co_return tl::unexpected(found.error());
  OpenFile& file = **found;
  if (has_flags(file.flags, O_PATH)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  if (file.type != S_IFREG) co_return tl::unexpected(std::errc::invalid_argument);
  Bytes base = 0;
  switch (whence) {
    case SEEK_SET:
      break;
    case SEEK_CUR:
      base = file.offset;
      break;
    case SEEK_END: {
      const Result<Attributes> attributes = co_await session_.attributes(file.inode);
      if (!attributes) co_return tl::unexpected(attributes.error());
      base = attributes->size;
      break;
    }
    case SEEK_DATA:
    case SEEK_HOLE: {
      const auto what = whence == SEEK_DATA ? Session::Seek::data : Session::Seek::hole;
      if (offset < 0) co_return tl::unexpected(std::errc::no_such_device_or_address);
      const Result<Bytes> at = co_await session_.seek(file.inode, static_cast<Bytes>(offset), what);
      if (at) file.offset = *at;
      co_return at;
    }
    default:
      co_return tl::unexpected(std::errc::invalid_argument);
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(static_cast<std::int64_t>(base), offset, &sum) || sum < 0) {
    co_return tl::unexpected(std::errc::invalid_argument);
  }
  file.offset = static_cast<Bytes>(sum);
  co_return file.offset;
}

Task<Result<void>> Process::truncate(std::string_view path, std::int64_t size) {
  const std::optional<Bytes> wanted = as_offset(size);
  if (!wanted) co_return tl::unexpected(std::errc::invalid_argument);
  const Result<Attributes> found = co_await find(path, true);
  if (!found) co_return tl::unexpected(found.error());
  Result<void> done;
  if (found->is_directory()) {
    done = tl::unexpected(std::errc::is_a_directory);
  } else if (!found->is_regular()) {
    done = tl::unexpected(std::errc::invalid_argument);
  } else {
    const bool writable = co_await may(*found, kMayWrite);
    if (writable) {
      const Result<WriteOptions> with = co_await before_write(found->inode);
      if (with) {
        done = co_await session_.truncate(found->inode, *wanted, *with);
      } else {
        done = tl::unexpected(with.error());
      }
    } else {
      done = tl::unexpected(std::errc::permission_denied);
    }
  }
  co_await session_.release(found->inode);
  co_return done;
}

Task<Result<void>> Process::ftruncate(int descriptor, std::int64_t size) {
  const std::optional<Bytes> wanted = as_offset(size);
  if (!wanted) co_return tl::unexpected(std::errc::invalid_argument);
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (has_flags((*file)->flags, O_PATH)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  if ((*file)->type != S_IFREG || !(*file)->is_open_for(kMayWrite)) {
    co_return tl::unexpected(std::errc::invalid_argument);
  }
  const Result<WriteOptions> with = co_await before_write((*file)->inode);
  if (!with) co_return tl::unexpected(with.error());
  co_return co_await session_.truncate((*file)->inode, *wanted, *with);
}

Task<Result<void>> Process::fallocate(int descriptor, AllocationMode mode, std::int64_t offset,
                                      std::int64_t length) {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (has_flags((*file)->flags, O_PATH)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  if (offset < 0 || length <= 0) co_return tl::unexpected(std::errc::invalid_argument);
  if (!(*file)->is_open_for(kMayWrite)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  const Result<WriteOptions> with = co_await before_write((*file)->inode);
  if (!with) co_return tl::unexpected(with.error());
  co_return co_await session_.allocate((*file)->inode, mode, static_cast<Bytes>(offset),
                                       static_cast<Bytes>(length), *with);
}

Task<Result<void>> Process::fsync(int descriptor) {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (has_flags((*file)->flags, O_PATH)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  co_return co_await session_.sync((*file)->inode);
}

// --- directories

Task<Result<std::optional<DirectoryEntry>>> Process::readdir(int descriptor) {
  const Result<OpenFile*> found = find_open(descriptor);
  if (!found) co_return tl::unexpected(found.error());
  OpenFile& file = **found;
  if (has_flags(file.flags, O_PATH)) co_return tl::unexpected(std::errc::bad_file_descriptor);
  if (file.type != S_IFDIR) co_return tl::unexpected(std::errc::not_a_directory);
  if (file.offset < kBehindDots) {
    DirectoryEntry dot{.name = file.offset == 0 ? "." : "..", .inode = file.inode, .type = S_IFDIR};
    const Result<InodeNumber> parent = co_await session_.parent(file.inode);
    if (!parent) co_return tl::unexpected(parent.error());
    if (file.offset == 1) dot.inode = *parent;
    if (file.offset == 0 && !has_flags(file.flags, O_NOATIME)) {
      const Result<Attributes> attributes = co_await session_.attributes(file.inode);
      if (attributes) co_await note_access(*attributes);
    }
    // Names that are made from now on may be left out, so that the reading ends.
    if (file.offset == 0) {
      const Result<std::uint64_t> last = co_await session_.last_cookie(file.inode);
      if (!last) co_return tl::unexpected(last.error());
      file.last = *last;
    }
    dot.cookie = ++file.offset;
    co_return dot;
  }
  if (file.ahead.empty()) {
    const auto more =
        co_await session_.entries(file.inode, file.offset - kBehindDots, kEntriesAhead);
    if (!more) co_return tl::unexpected(more.error());
    file.ahead.assign(more->begin(), more->end());
    if (file.last != 0) {
      std::erase_if(file.ahead,
                    [&](const DirectoryEntry& each) { return each.cookie > file.last; });
    }
    if (file.ahead.empty()) co_return std::nullopt;
  }
  DirectoryEntry next = file.ahead.front();
  file.ahead.pop_front();
  file.offset = next.cookie + kBehindDots;
  next.cookie = file.offset;
  co_return next;
}

Result<std::uint64_t> Process::telldir(int descriptor) const {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) return tl::unexpected(file.error());
  if ((*file)->type != S_IFDIR) return tl::unexpected(std::errc::not_a_directory);
  return (*file)->offset;
}

Result<void> Process::seekdir(int descriptor, std::uint64_t position) {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) return tl::unexpected(file.error());
  if ((*file)->type != S_IFDIR) return tl::unexpected(std::errc::not_a_directory);
  (*file)->offset = position;
  (*file)->ahead.clear();
  return {};
}

// --- locks

Result<void> Process::lock_range(int descriptor, const RangeLock& lock, LockOwnership ownership) {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) return tl::unexpected(file.error());
  if (locks_ == nullptr) return tl::unexpected(std::errc::operation_not_supported);
  const std::uint32_t wanted = lock.type == LockType::shared      ? kMayRead
                               : lock.type == LockType::exclusive ? kMayWrite
                                                                  : 0;
  if (!(*file)->is_open_for(wanted)) return tl::unexpected(std::errc::bad_file_descriptor);
  const LockTable::Owner owner =
      ownership == LockOwnership::process ? static_cast<LockTable::Owner>(this) : *file;
  return locks_->set((*file)->inode, owner, lock);
}

Result<std::optional<RangeLock>> Process::test_range(int descriptor, const RangeLock& lock,
                                                     LockOwnership ownership) const {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) return tl::unexpected(file.error());
  if (locks_ == nullptr) return tl::unexpected(std::errc::operation_not_supported);
  const LockTable::Owner owner =
      ownership == LockOwnership::process ? static_cast<LockTable::Owner>(this) : *file;
  return locks_->test((*file)->inode, owner, lock);
}

Result<void> Process::flock(int descriptor, LockType type) {
  const Result<OpenFile*> file = find_open(descriptor);
  if (!file) return tl::unexpected(file.error());
  if (has_flags((*file)->flags, O_PATH)) return tl::unexpected(std::errc::bad_file_descriptor);
  if (locks_ == nullptr) return tl::unexpected(std::errc::operation_not_supported);
  return locks_->set_whole((*file)->inode, *file, type);
}

}  // namespace perdura::fs::test
