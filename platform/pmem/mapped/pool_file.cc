#include "platform/pmem/mapped/pool_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

#include "platform/base/error.h"
#include "platform/pmem/mapped/dax_device.h"

namespace perdura::pmem::mapped {
namespace {

[[noreturn]] void refuse_full(const std::string& path, Bytes size) {
  struct statvfs room {};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const bool known = ::statvfs(folder.c_str(), &room) == 0;
  throw NoRoom(fmt::format(
      "no room for {} bytes of {}{}; choose a smaller size or another directory{}", size, path,
      known ? fmt::format(", where {} are free", room.f_bavail * room.f_frsize) : "",
      path.starts_with("/dev/shm/")
          ? ", or make it larger (mount -o remount,size=... /dev/shm; of a container: --shm-size)"
          : ""));
}

void allocate(int fd, const std::string& path, Bytes size, Allocation allocation) {
  if (allocation == Allocation::now) {
    if (::fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0) return;
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT) refuse_full(path, size);
    if (errno != EOPNOTSUPP && errno != EINTR) {
      throw PlatformError(
          fmt::format("cannot allocate {} bytes of {}: {}", size, path, error_text(errno)));
    }
  }
  struct statvfs free {};
  if (::fstatvfs(fd, &free) == 0 && free.f_blocks != 0 &&
      size / free.f_frsize > static_cast<Bytes>(free.f_bavail)) {
    refuse_full(path, size);
  }
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    throw PlatformError(
        fmt::format("cannot set the size of {} to {}: {}", path, size, error_text(errno)));
  }
}

// A file's name is durable only when its directory is, and the directory's own name only when its
// parent is. So all directories up to the root are synchronized.
void make_durable(const std::string& path, int fd) {
  int error = ::fsync(fd) == 0 ? 0 : errno;
  for (std::filesystem::path folder = std::filesystem::path(path).parent_path(); error == 0;
       folder = folder.parent_path()) {
    const File directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // A directory that this user may enter but not read existed before, so its name is durable
    // already.
    if (!directory) break;
    // Some file systems need no fsync of directories and return EINVAL.
    if (::fsync(directory.get()) != 0 && errno != EINVAL) error = errno;
    if (folder == folder.root_path()) break;
  }
  if (error != 0) {
    throw PlatformError(fmt::format("cannot make {} durable: {}", path, error_text(error)));
  }
}

File open_file(const std::string& path, Access access) {
  const int how = access == Access::private_copy ? O_RDONLY : O_RDWR;
  return File(::open(path.c_str(), how | O_CLOEXEC));
}

bool is_file_at(const std::string& path, const File& file) {
  struct stat named {};
  struct stat open {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(file.get(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

PoolFile opened(const File& file, const std::string& path) {
  PoolFile pool{path, map_pool(file.get(), path)};
  if (pool.mapping->is_on_dax()) refuse_bad_blocks(bad_blocks_of(file.get()), path, false);
  return pool;
}

// A file that is to get the name `path` when it is complete. It has no name until then, so that
// nothing of it remains if the process is killed. Where the file system, such as NFS, does not
// support that, or there is no /proc to name the file by, it has another name,
// PATH.new-PROCESS-NUMBER.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    file_ =
        File(::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file_ && ::access(name_of_descriptor().c_str(), F_OK) == 0) return;
    static std::atomic<unsigned> next_temporary{0};
    temporary_ = temporary_name(path, next_temporary.fetch_add(1));
    file_ = File(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file_) {
      throw PlatformError(fmt::format("cannot create {}: {}", temporary_, error_text(errno)));
    }
  }
  ~NewFile() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const File& file() const { return file_; }
  void give_name() const {
    const bool has_name = !temporary_.empty();
    const std::string from = has_name ? temporary_ : name_of_descriptor();
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(),
                 has_name ? 0 : AT_SYMLINK_FOLLOW) == 0) {
      return;
    }
    if (errno == EEXIST) {
      throw UsageError(fmt::format("{} exists already; remove it or choose another name", path_));
    }
    throw PlatformError(fmt::format("cannot create {}: {}", path_, error_text(errno)));
  }

 private:
  std::string name_of_descriptor() const { return fmt::format("/proc/self/fd/{}", file_.get()); }
  // A path that is such a name itself, since the caller will rename it, gets no second suffix.
  static std::string temporary_name(const std::string& path, unsigned number) {
    const std::string suffix = fmt::format(".new-{}-", ::getpid());
    return fmt::format("{}{}{}", path.substr(0, path.rfind(suffix)), suffix, number + 1);
  }

  const std::string& path_;
  std::string temporary_;  // empty if it has no name
  File file_;
};

}  // namespace

PoolFile create_pool_file(const std::string& path, Bytes size, Allocation allocation) {
  if (const auto inside = device_path(path)) {
    return {path, DaxDevice(inside->device).create(inside->name, size)};
  }
  if (size == 0) throw UsageError(fmt::format("a region needs a size: {}", path));
  if (::access(path.c_str(), F_OK) == 0) {
    throw UsageError(fmt::format("{} exists already; remove it or choose another name", path));
  }
  const NewFile made(path);
  allocate(made.file().get(), path, size, allocation);
  PoolFile pool = allocation == Allocation::now ? opened(made.file(), path)
                                                : PoolFile{path, map_file(made.file().get(), path)};
  made.give_name();
  // A file that is removed with its last user need not survive a power failure.
  if (allocation == Allocation::now) make_durable(path, made.file().get());
  return pool;
}

std::optional<PoolFile> open_pool_file(const std::string& path, Access access) {
  if (const auto inside = device_path(path)) {
    auto mapping = DaxDevice(inside->device).open(inside->name);
    if (!mapping) return std::nullopt;
    return PoolFile{path, std::move(mapping)};
  }
  const File file = open_file(path, access);
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    throw PlatformError(fmt::format("cannot open {}: {}", path, error_text(errno)));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0) {
    throw PlatformError(fmt::format("{} is not a region: not a file, or empty", path));
  }
  if (access == Access::private_copy) {
    refuse_bad_blocks(bad_blocks_of(file.get()), path, false);
    return PoolFile{path, map_private(file.get(), path)};
  }
  return opened(file, path);
}

PoolSource pool_source(const std::string& path) {
  const auto inside = device_path(path);
  PoolSource source{open_file(inside ? inside->device : path, Access::in_place), {}};
  const int error = source.file ? 0 : errno;
  if (error != 0 && error != ENOENT) {
    throw PlatformError(fmt::format("cannot open {}: {}", path, error_text(error)));
  }
  if (error == 0 && inside) {
    for (const NamedExtent& region : DaxDevice(inside->device).regions()) {
      if (region.name == inside->name) source.extent = region.extent;
    }
  } else if (error == 0) {
    struct stat info {};
    if (::fstat(source.file.get(), &info) == 0) {
      source.extent.length = static_cast<Bytes>(info.st_size);
    }
  }
  if (source.extent.length == 0) throw UsageError(fmt::format("there is no {}", path));
  return source;
}

std::optional<File> lock_pool_file(const std::string& path, PoolLock which, Access access,
                                   std::uint32_t part) {
  if (const auto inside = device_path(path)) {
    return DaxDevice(inside->device).lock(inside->name, which, part);
  }
  for (;;) {
    File file = open_file(path, access);
    if (!file && errno == ENOENT) throw UsageError(fmt::format("there is no {}", path));
    if (!file) throw PlatformError(fmt::format("cannot open {}: {}", path, error_text(errno)));
    std::optional<File> locked = try_lock(std::move(file), which, 0, path, access, part);
    // The path may have been given to another file before the lock was taken.
    if (!locked || is_file_at(path, *locked)) return locked;
  }
}

void remove_pool_file(const std::string& path) {
  if (const auto inside = device_path(path)) return DaxDevice(inside->device).remove(inside->name);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw PlatformError(fmt::format("cannot remove {}: {}", path, error_text(errno)));
  }
}

void create_pool_directory(const std::string& path) {
  if (device_path(path)) return;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw UsageError(
        fmt::format("cannot create the directory {} for persistent memory: {}; choose "
                    "another pm_directory",
                    path, error.message()));
  }
}

void remove_pool_directory(const std::string& path) noexcept {
  try {
    if (const auto inside = device_path(path)) {
      DaxDevice(inside->device).remove_all(inside->name + '/');
    } else {
      std::filesystem::remove_all(path);
    }
  } catch (const std::exception&) {
    // Errors are ignored: remains disturb only a later directory of the same name.
  }
}

}  // namespace perdura::pmem::mapped
