#include <fcntl.h>
#include <linux/falloc.h>

#include <cerrno>
#include <ctime>

#include "mount/answer.h"
#include "services/fs/posix/rules.h"

namespace perdura::mount {

namespace {

bool reads(int flags) { return (flags & O_ACCMODE) != O_WRONLY && (flags & O_NOATIME) == 0; }

std::optional<fs::AllocationMode> allocation_mode(int mode) {
  switch (mode) {
    case 0:
      return fs::AllocationMode::extend;
    case FALLOC_FL_KEEP_SIZE:
      return fs::AllocationMode::keep_size;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return fs::AllocationMode::punch;
    case FALLOC_FL_ZERO_RANGE:
      return fs::AllocationMode::zero;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return fs::AllocationMode::zero_keep_size;
    default:
      return std::nullopt;
  }
}

}  // namespace

Handler::Handler(fs::Session& session, Channel& channel, const MountState& mount)
    : session_(session),
      channel_(channel),
      is_shared_(mount.is_shared),
      access_times_(mount.access_times),
      readers_(mount.readers),
      releases_(mount.releases),
      listings_(mount.listings),
      locks_(mount.locks),
      recorder_(mount.recorder),
      locking_(mount.locks == nullptr ? nullptr : dynamic_cast<fs::LockSession*>(&session)) {}

Task<> Handler::releases_end() {
  // The kernel may not have said yet what is to be freed.
  readers_.call_another();
  do {
    co_await sleep_for(kPause);
  } while (releases_.are_under_way());
}

Task<> Handler::expect_work_on(fs::InodeNumber inode) {
  const fs::Result<fs::Attributes> found = co_await session_.attributes(inode);
  if (found) expect_work(found->blocks * 512);
}

fs::Timestamp time_now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

void fail(fuse_req_t request, std::errc error) { fuse_reply_err(request, static_cast<int>(error)); }

Task<> Handler::note_read(fs::InodeNumber inode) {
  if (access_times_ == AccessTimes::none) co_return;
  const fs::Timestamp now = time_now();
  const fs::Result<fs::Attributes> found = co_await session_.attributes(inode);
  if (!found || !updates_accessed(*found, now)) co_return;
  const fs::AttributeChange change{.accessed = now};
  const fs::Result<fs::Attributes> changed = co_await session_.change(inode, change);
  // Reading goes on even if the time cannot be set because the file system is full.
  static_cast<void>(changed);
}

// The kernel may keep its cache of the file, unless the next read must reach us to set the access
// time. All reads and writes of a shared file, or for a trace, reach us.
Task<> Handler::open(fuse_req_t request, fs::InodeNumber inode, fuse_file_info file) {
  if (is_uncached()) {
    file.direct_io = 1;
    co_await note_open(inode);
    fuse_reply_open(request, &file);
    co_return;
  }
  const fs::Result<fs::Attributes> found = co_await session_.attributes(inode);
  if (!found) {
    fail(request, found.error());
    co_return;
  }
  file.keep_cache = reads(file.flags) && updates_accessed(*found, time_now()) ? 0 : 1;
  fuse_reply_open(request, &file);
}

Task<> Handler::read(fuse_req_t request, fs::InodeNumber inode, Bytes offset, std::size_t size,
                     int flags) {
  if (buffer_.size() < size) buffer_.resize(size);
  const fs::Result<Bytes> got =
      co_await session_.read(inode, offset, std::span(buffer_).first(size));
  if (!got) {
    fail(request, got.error());
    co_return;
  }
  if (reads(flags)) co_await note_read(inode);
  note(fs::TraceKind::read, inode, offset, *got);
  fuse_reply_buf(request, reinterpret_cast<const char*>(buffer_.data()), *got);
}

Task<fs::WriteOptions> Handler::write_options(fuse_req_t request, fs::InodeNumber inode,
                                              bool clear_set_id) {
  const fs::WriteOptions options{.now = time_now(), .clear_set_id = clear_set_id};
  if (!clear_set_id) co_return options;
  const fs::Result<fs::Attributes> before = co_await session_.attributes(inode);
  if (!before || (before->mode & (S_ISUID | S_ISGID)) == 0) co_return options;
  // The kernel caches the mode and does not know that it will change.
  channel_.forget_attributes(inode);
  const auto permissions = permissions_after_write(credentials_of(request), *before);
  if (permissions) {
    const fs::AttributeChange change{.permissions = permissions, .changed = options.now};
    const fs::Result<fs::Attributes> changed = co_await session_.change(inode, change);
    static_cast<void>(changed);  // the write will report any error
  }
  co_return options;
}

Task<> Handler::write(fuse_req_t request, fs::InodeNumber inode, Bytes offset,
                      std::span<const std::byte> data, int flags, bool clear_set_id) {
  const fs::WriteOptions options = co_await write_options(request, inode, clear_set_id);
  std::optional<Bytes> where = offset;
  if (is_shared_ && (flags & O_APPEND) != 0) where.reset();
  const fs::Result<Bytes> written =
      co_await with_space([&] { return write_or_append(inode, where, data, options); });
  Bytes done = written ? data.size() : 0;
  if (!written && written.error() == std::errc::no_space_on_device) {
    done = co_await write_what_fits(inode, where, data, options);
  }
  if (done > 0) {
    const auto kind = (flags & O_APPEND) != 0 ? fs::TraceKind::append : fs::TraceKind::write;
    note(kind, inode, written.value_or(offset), done);
    fuse_reply_write(request, done);
  } else {
    fail(request, written.error());
  }
}

Task<fs::Result<Bytes>> Handler::write_or_append(fs::InodeNumber inode, std::optional<Bytes> offset,
                                                 std::span<const std::byte> data,
                                                 fs::WriteOptions options) {
  if (!offset) co_return co_await session_.append(inode, data, options);
  const fs::Result<void> written = co_await session_.write(inode, *offset, data, options);
  if (!written) co_return tl::unexpected(written.error());
  co_return *offset;
}

// POSIX wants as much written as there is space for, but a session writes all or nothing.
// Overwriting needs space for a new copy temporarily, so it may also succeed in parts.
Task<Bytes> Handler::write_what_fits(fs::InodeNumber inode, std::optional<Bytes> offset,
                                     std::span<const std::byte> data, fs::WriteOptions options) {
  constexpr Bytes kLeast = fs::kBlock;
  Bytes done = 0;
  for (Bytes part = data.size() / 2; done < data.size();) {
    const auto next = data.subspan(done, std::min(std::max(part, kLeast), data.size() - done));
    const std::optional<Bytes> where = offset ? std::optional(*offset + done) : std::nullopt;
    const fs::Result<Bytes> written = co_await write_or_append(inode, where, next, options);
    if (written) {
      done += next.size();
    } else if (next.size() > kLeast && written.error() == std::errc::no_space_on_device) {
      part = next.size() / 2;
    } else {
      break;
    }
  }
  co_return done;
}

Task<> Handler::allocate(fuse_req_t request, fs::InodeNumber inode, int mode, Bytes offset,
                         Bytes length) {
  const auto known = allocation_mode(mode);
  if (!known) {
    fuse_reply_err(request, EOPNOTSUPP);
    co_return;
  }
  // The kernel leaves it to the file system who may keep set-user-ID here (CAP_FSETID).
  const fs::WriteOptions options =
      co_await write_options(request, inode, fuse_req_ctx(request)->uid != 0);
  expect_work(length);
  const fs::Result<void> done = co_await with_space(
      [&] { return session_.allocate(inode, *known, offset, length, options); });
  if (done && is_traced()) co_await note_allocated(inode, offset + length);
  fuse_reply_err(request, done ? 0 : static_cast<int>(done.error()));
}

Task<> Handler::seek(fuse_req_t request, fs::InodeNumber inode, Bytes offset, int whence) {
  const auto what = whence == SEEK_DATA ? fs::Session::Seek::data : fs::Session::Seek::hole;
  const fs::Result<Bytes> found = co_await session_.seek(inode, offset, what);
  if (found) {
    fuse_reply_lseek(request, static_cast<off_t>(*found));
  } else {
    fail(request, found.error());
  }
}

Task<> Handler::sync(fuse_req_t request, fs::InodeNumber inode) {
  const fs::Result<void> result = co_await session_.sync(inode);
  if (result) note(fs::TraceKind::sync, inode);
  fuse_reply_err(request, result ? 0 : static_cast<int>(result.error()));
}

}  // namespace perdura::mount
