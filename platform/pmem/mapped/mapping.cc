#include "platform/pmem/mapped/mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura::pmem::mapped {
namespace {

// A file, identified by device and inode, the offset in it, and how it is used.
using Identity = std::tuple<dev_t, ino_t, Bytes, Access>;

std::mutex mappings_mutex;
// The pointers are weak, since a mapping lasts only as long as it is used. While it does, the inode
// number is not reused. Never destroyed: a program that does not know of the library may end while
// threads of the library are connecting again (preload), after static objects were destroyed.
std::map<Identity, std::weak_ptr<Mapping>>& mappings() {
  static auto& all = *new std::map<Identity, std::weak_ptr<Mapping>>;
  return all;
}

struct stat status_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    throw PlatformError(fmt::format("cannot examine {}: {}", path, error_text(errno)));
  }
  return info;
}

template <class Make>
std::shared_ptr<Mapping> find_or_make(const Identity& identity, Bytes size, const Make& make) {
  const std::scoped_lock lock(mappings_mutex);
  auto& all = mappings();
  if (const auto found = all.find(identity); found != all.end()) {
    if (auto mapping = found->second.lock(); mapping && mapping->size() == size) return mapping;
  }
  std::shared_ptr<Mapping> mapping = make();
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  all[identity] = mapping;
  return mapping;
}

std::shared_ptr<Mapping> map_whole(int fd, const std::string& path, Access access, int flags) {
  const struct stat info = status_of(fd, path);
  const auto size = static_cast<Bytes>(info.st_size);
  return find_or_make({info.st_dev, info.st_ino, 0, access}, size, [&] {
    void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (base == MAP_FAILED) {
      throw PlatformError(
          fmt::format("cannot map {} ({} bytes): {}", path, size, error_text(errno)));
    }
    return std::make_shared<Mapping>(static_cast<std::byte*>(base), size, size);
  });
}

}  // namespace

Mapping::Mapping(PersistentMap map, Bytes size, std::string path, std::shared_ptr<void> holder)
    : base_(map.base),
      size_(size),
      pages_(map.length),
      path_(std::move(path)),
      holder_(std::move(holder)),
      map_(std::move(map)) {}

Mapping::~Mapping() {
  if (!map_.handle) {
    ::munmap(base_, pages_);
    return;
  }
  if (!is_on_dax()) return;
  if (const std::string problem = deep_flush(map_); !problem.empty()) {
    fmt::print(stderr,
               "perdura: {}: no deep flush, only what flushes and fences made durable: {}\n", path_,
               problem);
  }
}

std::shared_ptr<Mapping> map_file(int fd, const std::string& path) {
  return map_whole(fd, path, Access::in_place, MAP_SHARED);
}

// Memory is reserved only for the pages that are changed.
std::shared_ptr<Mapping> map_private(int fd, const std::string& path) {
  return map_whole(fd, path, Access::private_copy, MAP_PRIVATE | MAP_NORESERVE);
}

std::shared_ptr<Mapping> map_pool(int fd, const std::string& path) {
  const struct stat info = status_of(fd, path);
  const auto size = static_cast<Bytes>(info.st_size);
  return find_or_make({info.st_dev, info.st_ino, 0, Access::in_place}, size, [&] {
    return std::make_shared<Mapping>(map_persistent(fd, {0, size}, path), size, path);
  });
}

std::shared_ptr<Mapping> map_part(int fd, Extent part, Bytes size, const std::string& path,
                                  std::shared_ptr<void> holder) {
  const struct stat info = status_of(fd, path);
  return find_or_make({info.st_dev, info.st_ino, part.offset, Access::in_place}, size, [&] {
    return std::make_shared<Mapping>(map_persistent(fd, part, path), size, path, std::move(holder));
  });
}

File::File(int fd) : fd_(fd) {
  if (fd < 0 || fd > STDERR_FILENO) return;
  fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

int File::release() { return std::exchange(fd_, -1); }

std::optional<File> try_lock(File file, PoolLock which, Bytes offset, const std::string& path,
                             Access access, std::uint32_t part) {
  constexpr Bytes kLocks = Bytes{1} << 62;
  struct flock lock {};
  lock.l_type = access == Access::private_copy ? F_RDLCK : F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start =
      static_cast<off_t>(kLocks + offset + part * kPoolLocks + static_cast<Bytes>(which));
  lock.l_len = 1;
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) == 0) return file;
  if (errno == EAGAIN || errno == EACCES) return std::nullopt;
  throw PlatformError(fmt::format("cannot lock {}: {}", path, error_text(errno)));
}

std::string error_text(int error) {
  std::string text = std::generic_category().message(error);
  if (error == EMFILE || error == ENFILE) return fmt::format("{} ({})", text, limits_of_files());
  if (error == ENOMEM) return fmt::format("{} ({})", text, limits_of_memory());
  return text;
}

}  // namespace perdura::pmem::mapped
