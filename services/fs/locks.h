// Advisory locks on the files of a file system that several mounts use at once (fcntl, flock). They
// hold over all mounts, are not durable, and end with the mount that has them.
//
// A session whose file system has such locks is also a LockSession.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "services/fs/fs.h"

namespace perdura::fs {

// Locks of different kinds ignore each other, as on Linux.
enum class LockKind : std::uint8_t {
  ranges,  // fcntl: of bytes; an owner's locks are merged and split
  files,   // flock: of the whole file, whatever the range says
};
enum class LockMode : std::uint8_t { none, shared, exclusive };

struct FileLock {
  LockKind kind{};
  LockMode mode{};  // none: gives up what the owner has in the range
  Bytes first = 0;
  Bytes last = std::numeric_limits<std::int64_t>::max();  // included
  std::uint64_t owner = 0;                                // among those of its mount
  std::uint32_t process = 0;                              // the number of the process, for others
};

class LockSession {
 public:
  virtual ~LockSession() = default;
  // Does not wait: resource_unavailable_try_again if another owner has a lock that forbids it, and
  // no_lock_available if there are too many. What the owner has in the range gets the new mode. The
  // inode must be held; when its mount no longer holds it, the mount's locks of it end.
  virtual Task<Result<void>> lock(InodeNumber inode, const FileLock& lock) = 0;
  // A lock that forbids this one; nullopt if there is none.
  virtual Task<Result<std::optional<FileLock>>> forbidding_lock(InodeNumber inode,
                                                                const FileLock& lock) = 0;
};

}  // namespace perdura::fs
