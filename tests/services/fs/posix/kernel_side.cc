#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/falloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "tests/services/fs/posix/sides.h"

namespace perdura::fs::test {
namespace {

Outcome outcome_of(std::int64_t result) {
  return result < 0 ? Outcome{.error = errno}
                    : Outcome{.value = static_cast<std::uint64_t>(result)};
}

Timestamp as_time(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

Seen as_seen(const struct stat& status) {
  return {.inode = status.st_ino,
          .mode = status.st_mode,
          .uid = status.st_uid,
          .gid = status.st_gid,
          .links = status.st_nlink,
          .device = status.st_rdev,
          .size = S_ISDIR(status.st_mode) ? 0 : static_cast<std::uint64_t>(status.st_size),
          .modified = as_time(status.st_mtim),
          .changed = as_time(status.st_ctim)};
}

timespec as_timespec(const NewTime& time) {
  if (time.now) return {0, UTIME_NOW};
  if (time.omit) return {0, UTIME_OMIT};
  return {time.time.seconds, static_cast<long>(time.time.nanoseconds)};
}

int allocation_flags(AllocationMode mode) {
  switch (mode) {
    case AllocationMode::extend:
      return 0;
    case AllocationMode::keep_size:
      return FALLOC_FL_KEEP_SIZE;
    case AllocationMode::punch:
      return FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    case AllocationMode::zero:
      return FALLOC_FL_ZERO_RANGE;
    case AllocationMode::zero_keep_size:
      return FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
  }
  return -1;
}

}  // namespace

KernelSide::KernelSide(const std::string& directory) {
  slots_.fill(-1);
  if (unshare(CLONE_FS) != 0 || chroot(directory.c_str()) != 0 || ::chdir("/") != 0) {
    throw std::runtime_error("no root of its own");
  }
  umask(022);
  // A pipe that nobody reads is an error like others.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
}

KernelSide::~KernelSide() {
  become(0);
  for (const int file : slots_) {
    if (file >= 0) close(file);
  }
}

// By system calls of the thread; the library's functions change those of all threads.
void KernelSide::become(std::size_t user) {
  if (user == user_) return;
  const Credentials& who = kUsers[user];
  bool done = syscall(SYS_setresuid, -1, 0, -1) == 0;
  done &= syscall(SYS_setgroups, who.groups.size(), who.groups.data()) == 0;
  done &= syscall(SYS_setresgid, -1, who.gid, -1) == 0;
  done &= syscall(SYS_setresuid, -1, who.uid, -1) == 0;
  if (!done) throw std::runtime_error("cannot become another user");
  user_ = user;
}

Outcome KernelSide::open(const Operation& operation) {
  const int file = ::open(operation.path.c_str(), operation.flags, operation.mode);
  if (file < 0) return {.error = errno};
  if (slots_[operation.slot] >= 0) close(slots_[operation.slot]);
  slots_[operation.slot] = file;
  return {};
}

Outcome KernelSide::list(const std::string& path) {
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) return {.error = errno};
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    names.push_back(std::string(entry->d_name) + " " + std::to_string(DTTOIF(entry->d_type)));
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  Outcome outcome;
  for (const std::string& name : names) outcome.data += name + "\n";
  return outcome;
}

Outcome KernelSide::get_attribute(const Operation& operation) {
  char value[1000];
  const auto get = operation.follow ? getxattr : lgetxattr;
  const ssize_t length = get(operation.path.c_str(), operation.other.c_str(), value, sizeof value);
  if (length < 0) return {.error = errno};
  return {.data = std::string(value, static_cast<std::size_t>(length))};
}

Outcome KernelSide::apply(const Operation& operation) {
  become(operation.user);
  const char* const path = operation.path.c_str();
  const char* const other = operation.other.c_str();
  const int file = slots_[operation.slot];
  const int no_follow = operation.follow ? 0 : AT_SYMLINK_NOFOLLOW;
  const auto length = static_cast<std::size_t>(operation.length);
  using enum Operation::Kind;
  switch (operation.kind) {
    case open:
      return this->open(operation);
    case close:
      slots_[operation.slot] = -1;
      return outcome_of(::close(file));
    case dup: {
      const int copy = ::dup(file);
      if (copy < 0) return outcome_of(copy);
      const std::size_t next = (operation.slot + 1) % kSlots;
      if (slots_[next] >= 0) ::close(slots_[next]);
      slots_[next] = copy;
      return {};
    }
    case read:
    case pread: {
      std::string into(length, '?');
      const ssize_t got = operation.kind == read
                              ? ::read(file, into.data(), length)
                              : ::pread(file, into.data(), length, operation.offset);
      Outcome outcome = outcome_of(got);
      if (got > 0) outcome.data = into.substr(0, static_cast<std::size_t>(got));
      return outcome;
    }
    case write:
      return outcome_of(::write(file, operation.data.data(), operation.data.size()));
    case pwrite:
      return outcome_of(
          ::pwrite(file, operation.data.data(), operation.data.size(), operation.offset));
    case lseek:
    case seek_data: {
      // Positions of directories are the file system's own.
      struct stat status {};
      if (::fstat(file, &status) == 0 && !S_ISREG(status.st_mode)) return {};
      return outcome_of(::lseek(file, operation.offset, operation.flags));
    }
    case truncate:
      return outcome_of(::truncate(path, operation.offset));
    case ftruncate:
      return outcome_of(::ftruncate(file, operation.offset));
    case allocate:
      return outcome_of(::fallocate(file,
                                    allocation_flags(static_cast<AllocationMode>(operation.flags)),
                                    operation.offset, operation.length));
    case fsync:
      return outcome_of(::fsync(file));
    case mkdir:
      return outcome_of(::mkdir(path, operation.mode));
    case rmdir:
      return outcome_of(::rmdir(path));
    case unlink:
      return outcome_of(::unlink(path));
    case link:
      return outcome_of(
          linkat(AT_FDCWD, path, AT_FDCWD, other, operation.follow ? AT_SYMLINK_FOLLOW : 0));
    case link_open:
      become(0);  // the kernel wants a privilege for this
      return outcome_of(linkat(file, "", AT_FDCWD, other, AT_EMPTY_PATH));
    case symlink:
      return outcome_of(::symlink(other, path));
    case readlink: {
      char target[5000];
      const ssize_t size = ::readlink(path, target, sizeof target);
      if (size < 0) return {.error = errno};
      return {.data = std::string(target, static_cast<std::size_t>(size))};
    }
    case rename:
      return outcome_of(syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, operation.flags));
    case mknod:
      return outcome_of(::mknod(path, operation.mode, makedev(1, 3)));
    case chdir:
      return outcome_of(::chdir(path));
    case stat:
    case fstat: {
      struct stat status {};
      const int done = operation.kind == stat ? fstatat(AT_FDCWD, path, &status, no_follow)
                                              : ::fstat(file, &status);
      if (done != 0) return {.error = errno};
      return {.value = as_seen(status).size, .data = std::to_string(status.st_mode)};
    }
    case chmod:
      return outcome_of(::chmod(path, operation.mode));
    case fchmod:
      return outcome_of(::fchmod(file, operation.mode));
    case chown:
      return outcome_of(::chown(path, operation.uid.value_or(-1), operation.gid.value_or(-1)));
    case lchown:
      return outcome_of(::lchown(path, operation.uid.value_or(-1), operation.gid.value_or(-1)));
    case utimens: {
      const timespec times[2] = {as_timespec(operation.accessed), as_timespec(operation.modified)};
      return outcome_of(utimensat(AT_FDCWD, path, times, no_follow));
    }
    case access:
      return outcome_of(syscall(SYS_faccessat2, AT_FDCWD, path, operation.mode, AT_EACCESS));
    case getxattr:
      return get_attribute(operation);
    case setxattr: {
      const auto set = operation.follow ? ::setxattr : ::lsetxattr;
      return outcome_of(
          set(path, other, operation.data.data(), operation.data.size(), operation.flags));
    }
    case removexattr:
      return outcome_of(operation.follow ? ::removexattr(path, other) : lremovexattr(path, other));
    case listxattr: {
      char names[2000];
      const auto list_names = operation.follow ? ::listxattr : llistxattr;
      const ssize_t size = list_names(path, names, sizeof names);
      if (size < 0) return {.error = errno};
      std::vector<std::string> sorted;
      for (ssize_t at = 0; at < size;) {
        sorted.emplace_back(names + at);
        at += static_cast<ssize_t>(sorted.back().size()) + 1;
      }
      std::sort(sorted.begin(), sorted.end());
      Outcome outcome;
      for (const std::string& name : sorted) outcome.data += name + "\n";
      return outcome;
    }
    case list:
      return this->list(operation.path);
    case umask:
      ::umask(operation.mode & 0777);
      return {};
    case count:
      break;
  }
  return {};
}

Picture KernelSide::picture() {
  become(0);
  Picture picture;
  const std::function<void(const std::string&, int)> add = [&](const std::string& path, int in) {
    struct stat status {};
    const std::string name = path.substr(path.rfind('/') + 1);
    if (fstatat(in, name.empty() ? "/" : name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    picture[path] = as_seen(status);
    if (!S_ISDIR(status.st_mode)) return;
    const int directory = openat(in, name.empty() ? "/" : name.c_str(),
                                 O_RDONLY | O_DIRECTORY | O_NOATIME | O_NOFOLLOW);
    DIR* const entries = fdopendir(directory);
    while (const dirent* entry = readdir(entries)) {
      const std::string found = entry->d_name;
      if (found != "." && found != "..") add((path == "/" ? "" : path) + "/" + found, directory);
    }
    closedir(entries);
  };
  add("/", AT_FDCWD);
  return picture;
}

bool KernelSide::is_lost() {
  become(0);
  struct stat status {};
  return ::stat(".", &status) != 0 || status.st_nlink == 0;
}

std::string KernelSide::bytes_of(const std::string& path, Bytes offset, Bytes length) {
  become(0);
  const int file = ::open(path.c_str(), O_RDONLY | O_NOATIME);
  std::string bytes(length, '?');
  const ssize_t got = ::pread(file, bytes.data(), length, static_cast<off_t>(offset));
  ::close(file);
  return bytes.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
}

std::vector<Extent> KernelSide::data_of(const std::string& path) {
  become(0);
  std::vector<Extent> extents;
  const int file = ::open(path.c_str(), O_RDONLY | O_NOATIME);
  for (off_t hole = 0;;) {
    const off_t data = ::lseek(file, hole, SEEK_DATA);
    if (data < 0) break;
    hole = ::lseek(file, data, SEEK_HOLE);
    Extent extent{.offset = static_cast<Bytes>(data), .bytes = {}};
    extent.bytes.resize(static_cast<std::size_t>(hole - data));
    const ssize_t got = ::pread(file, extent.bytes.data(), extent.bytes.size(), data);
    extent.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    extents.push_back(std::move(extent));
  }
  ::close(file);
  return extents;
}

}  // namespace perdura::fs::test
