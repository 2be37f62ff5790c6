#include "platform/pmem/mapped/mapping.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "platform/error.h"

namespace perdura::pmem::mapped {
namespace {

using FileId = std::pair<dev_t, ino_t>;

std::mutex mappings_mutex;
// Weak: a mapping lasts for as long as somebody uses it, and while it does its inode is not reused.
std::map<FileId, std::weak_ptr<Mapping>>& mappings() {
  static std::map<FileId, std::weak_ptr<Mapping>> all;
  return all;
}

}  // namespace

Mapping::~Mapping() { ::munmap(base_, size_); }

std::shared_ptr<Mapping> map_file(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    throw PlatformError(fmt::format("cannot examine {}: {}", path, error_text(errno)));
  }
  const std::scoped_lock lock(mappings_mutex);
  auto& all = mappings();
  const FileId id{info.st_dev, info.st_ino};
  const auto size = static_cast<Bytes>(info.st_size);
  if (const auto found = all.find(id); found != all.end()) {
    if (auto mapping = found->second.lock(); mapping && mapping->size() == size) return mapping;
  }
  // On a DAX file system flushed stores are durable only if the file's own records of its blocks
  // are: with MAP_SYNC the kernel sees to it before the first store. Elsewhere there is no such
  // promise to be had.
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
  if (base == MAP_FAILED) {
    base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (base == MAP_FAILED) {
    throw PlatformError(fmt::format("cannot map {} ({} bytes): {}", path, size, error_text(errno)));
  }
  auto mapping = std::make_shared<Mapping>(static_cast<std::byte*>(base), size);
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  all[id] = mapping;
  return mapping;
}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

int File::release() { return std::exchange(fd_, -1); }

std::string error_text(int error) { return std::generic_category().message(error); }

}  // namespace perdura::pmem::mapped
