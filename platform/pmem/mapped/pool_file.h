// The files behind regions: a persistent pool on a DAX file system, a tmpfs or a disk, or a node's
// DRAM that peers map. A file is its region byte for byte; its contents belong to the systems. A
// path below a DAX device (/dev/dax0.0/run/pool) is a region inside it (dax_device.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "platform/base/units.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::pmem::mapped {

struct PoolFile {
  std::string path;
  std::shared_ptr<Mapping> mapping;
};

// Whether the file's blocks are allocated when it is created (so that a full medium is found out
// then and not by a signal later, and so that the file is durable under its name) or when they are
// first touched (free space is only compared).
enum class Allocation : std::uint8_t { now, on_touch };

// A new file of zeros that appears under its name only when it is complete. Throws UsageError if
// the name is taken, the size is zero or the medium is too full, PlatformError otherwise.
PoolFile create_pool_file(const std::string& path, Bytes size, Allocation allocation);

// Nothing if there is no such file; PlatformError if it cannot be a pool, UsageError if it has bad
// blocks.
std::optional<PoolFile> open_pool_file(const std::string& path);

// It is no error if there is none.
void remove_pool_file(const std::string& path);

// The directory of pool files, if there is none: nothing to do in a device. Throws UsageError.
void create_pool_directory(const std::string& path);
// With all that is in it; problems are ignored.
void remove_pool_directory(const std::string& path) noexcept;

}  // namespace perdura::pmem::mapped
