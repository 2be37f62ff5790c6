// The files that back regions: a persistent pool on a DAX file system, a tmpfs or a disk, or a
// node's DRAM that peers map. A file holds exactly the bytes of its region; only the systems
// interpret them. A path below a DAX device (/dev/dax0.0/run/pool) denotes a region inside the
// device (dax_device.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "platform/base/error.h"
#include "platform/base/units.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::pmem::mapped {

struct PoolFile {
  std::string path;
  std::shared_ptr<Mapping> mapping;
};

// When the file's blocks are allocated. `now`: when the file is created, so that a full medium is
// detected then and not by a signal later, and so that the file is durable under its name.
// `on_touch`: when they are first accessed; creation only compares the size with the free space.
enum class Allocation : std::uint8_t { now, on_touch };

// Thrown if the medium is too full.
struct NoRoom : UsageError {
  using UsageError::UsageError;
};

// Creates a file filled with zeros; it appears under its name only when it is complete, and if the
// process is killed before, nothing of it remains (except on file systems such as NFS). Throws
// UsageError if the name is taken, the size is zero or the medium is too full (NoRoom), and
// PlatformError for other errors.
PoolFile create_pool_file(const std::string& path, Bytes size, Allocation allocation);

// Opens a file; returns nullopt if there is no such file. Throws PlatformError if it cannot be a
// pool, and UsageError if it has bad blocks. Regions of a device are always used in place.
std::optional<PoolFile> open_pool_file(const std::string& path, Access access = Access::in_place);

// A pool's file, or its device, and the pool's place in it, for callers that map it themselves.
// Throws UsageError if there is no such pool.
struct PoolSource {
  File file{};
  Extent extent{};
};
PoolSource pool_source(const std::string& path);

// Locks the pool against other processes, and against other users in this process; the lock ends
// when the descriptor is closed or the process dies. Returns nullopt if it is held already; users
// with a private copy of a file share it. Throws UsageError if there is no such pool.
std::optional<File> lock_pool_file(const std::string& path, PoolLock which,
                                   Access access = Access::in_place, std::uint32_t part = 0);

// Does nothing if there is no such file.
void remove_pool_file(const std::string& path);

// Creates the directory of pool files if it does not exist. Does nothing for a path in a device.
// Throws UsageError.
void create_pool_directory(const std::string& path);
// Removes the directory with all its contents; ignores errors.
void remove_pool_directory(const std::string& path) noexcept;

}  // namespace perdura::pmem::mapped
