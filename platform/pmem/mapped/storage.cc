#include "platform/pmem/mapped/storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>

#include "platform/base/error.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/pmem/mapped/dax_memory.h"

namespace perdura::pmem::mapped {
namespace {

// In tests, libpmem2 can be forced to treat any memory as persistent.
bool is_forced() { return std::getenv("PMEM2_FORCE_GRANULARITY") != nullptr; }

std::string_view on_dax(Granularity granularity) {
  return granularity == Granularity::byte
             ? "a store is durable when it is visible (eADR), no flush is needed"
             : "a flushed line is durable";
}

bool is_tmpfs(const std::string& path) {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

// The granularity that a new file in the directory would have.
Granularity granularity_in(const std::string& directory) {
  constexpr Bytes kSize = 4096;
  const File file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::ftruncate(file.get(), kSize) != 0) return Granularity::unknown;
  try {
    return map_persistent(file.get(), {0, kSize}, directory).granularity;
  } catch (const PlatformError&) {
    return Granularity::unknown;
  }
}

bool has_dax(const std::string& directory) {
  const File file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  struct statx info {};
  return file && ::statx(file.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) == 0 &&
         (info.stx_attributes & STATX_ATTR_DAX) != 0;
}

}  // namespace

std::string_view to_string(StorageKind kind) {
  switch (kind) {
    case StorageKind::device_dax:
      return "device DAX";
    case StorageKind::dax_file_system:
      return "file-system DAX";
    case StorageKind::tmpfs:
      return "tmpfs";
    case StorageKind::page_cache:
      return "page cache";
  }
  return "unknown";
}

std::string_view to_string(Granularity granularity) {
  switch (granularity) {
    case Granularity::byte:
      return "byte";
    case Granularity::cache_line:
      return "cache line";
    case Granularity::page:
      return "page";
    case Granularity::unknown:
      return "unknown";
  }
  return "unknown";
}

Storage storage_on_device(const DaxMemory& memory, Granularity granularity,
                          const std::string& geometry) {
  Storage storage{StorageKind::device_dax, granularity, memory.persistent, geometry};
  if (!memory.persistent) {
    storage.promise +=
        fmt::format("; it is not known whether it survives a power failure: {}", memory.reason);
  } else if (!*memory.persistent) {
    storage.promise += fmt::format("; survives processes, not power: {}", memory.reason);
  } else {
    storage.promise += fmt::format("; {}", on_dax(granularity));
  }
  return storage;
}

Storage storage_of(const std::string& path) {
  if (const auto inside = device_path(path)) {
    const DaxDevice device(inside->device);
    return storage_on_device(dax_memory_of(folder_of_device(inside->device)), device.granularity(),
                             fmt::format("device DAX of {} bytes, alignment {}",
                                         device.geometry().size, device.geometry().alignment));
  }
  const Granularity granularity = granularity_in(path);
  const std::string_view forced =
      is_forced() ? " as PMEM2_FORCE_GRANULARITY has it, whatever the memory is" : "";
  if (has_dax(path)) {
    if (is_on_dax(granularity)) {
      return {StorageKind::dax_file_system, granularity, true,
              fmt::format("file-system DAX with MAP_SYNC; {}{}", on_dax(granularity), forced)};
    }
    return {
        StorageKind::dax_file_system, granularity, std::nullopt,
        "file-system DAX without MAP_SYNC; a flushed line may be lost with the file's record of "
        "its blocks"};
  }
  if (is_tmpfs(path)) {
    return {StorageKind::tmpfs, granularity, false,
            fmt::format("tmpfs; survives processes, not power{}",
                        is_forced() ? " (PMEM2_FORCE_GRANULARITY is set)" : "")};
  }
  return {StorageKind::page_cache, granularity, false,
          fmt::format("page cache of a file system without DAX; survives processes, not power{}",
                      is_forced() ? " (PMEM2_FORCE_GRANULARITY is set)" : "")};
}

}  // namespace perdura::pmem::mapped
