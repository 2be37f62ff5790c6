// Implements persistent_source.h in a build without libpmem2.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {

bool have_libpmem2() { return false; }

PersistentMap map_persistent(int fd, Extent extent, const std::string& path) {
  // On a DAX file system flushed stores are durable only if the file system's metadata on the
  // file's blocks is durable, too. With MAP_SYNC the kernel ensures that before the first store to
  // a page; elsewhere nothing ensures it. Without libpmem2 it is unknown whether the caches are in
  // the persistence domain.
  const auto map = [&](int flags) {
    return ::mmap(nullptr, extent.length, PROT_READ | PROT_WRITE, flags, fd,
                  static_cast<off_t>(extent.offset));
  };
  void* base = map(MAP_SHARED_VALIDATE | MAP_SYNC);
  const auto granularity = base == MAP_FAILED ? Granularity::page : Granularity::cache_line;
  if (base == MAP_FAILED) base = map(MAP_SHARED);
  if (base == MAP_FAILED) {
    throw PlatformError(
        fmt::format("cannot map {} ({} bytes): {}", path, extent.length, error_text(errno)));
  }
  const Bytes length = extent.length;
  return {static_cast<std::byte*>(base), length, granularity,
          std::shared_ptr<void>(base, [length](void* mapped) { ::munmap(mapped, length); })};
}

std::string deep_flush(const PersistentMap& map) {
  return ::msync(map.base, map.length, MS_SYNC) == 0 ? "" : error_text(errno);
}

DeviceGeometry device_geometry(int, const std::string& path) {
  throw UsageError(fmt::format(
      "{} is device DAX, but this perdura was built without libpmem2; install libpmem2-dev "
      "(scripts/packages) and build it again, or give a directory",
      path));
}

BadBlocks bad_blocks_of(int) { return {{}, "this perdura was built without libpmem2"}; }

}  // namespace perdura::pmem::mapped
