#include "preload/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::preload {

MappedFile::MappedFile(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found {};
  if (descriptor < 0 && errno == ENOENT) return;
  bool is_there = descriptor >= 0 && fstat(descriptor, &found) == 0;
  if (is_there && found.st_size > 0) {
    const auto size = static_cast<std::size_t>(found.st_size);
    void* const memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    is_there = memory != MAP_FAILED;
    if (is_there) bytes_ = {static_cast<const std::byte*>(memory), size};
  }
  const int problem = errno;
  if (descriptor >= 0) close(descriptor);
  if (!is_there) throw PlatformError(fmt::format("{}: {}", file, std::strerror(problem)));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace perdura::preload
