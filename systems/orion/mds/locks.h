// The advisory locks of all mounts (services/fs/locks.h), in DRAM: they end with the MDS, as all mounts
// do. Shared by the threads of the MDS.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "platform/runtime/sync.h"
#include "services/fs/locks.h"

namespace perdura::systems::orion {

class Locks {
 public:
  // The most locks of an inode: no client can take all memory.
  static constexpr std::size_t kMost = 4096;

  // LockSession::lock() by an owner of a mount; errc{} on success.
  std::errc set(std::uint64_t mount, std::uint64_t inode, const fs::FileLock& lock);
  // LockSession::forbidding_lock()
  std::optional<fs::FileLock> forbidding(std::uint64_t mount, std::uint64_t inode,
                                         const fs::FileLock& lock) const;
  // Ends the locks of a mount: those of an inode, and all.
  void end(std::uint64_t mount, std::uint64_t inode);
  void end(std::uint64_t mount);

 private:
  struct HeldLock {
    std::uint64_t mount = 0;
    fs::FileLock lock;
  };
  using HeldLocks = std::vector<HeldLock>;  // those of an inode

  static const HeldLock* find_forbidding(const HeldLocks& held, std::uint64_t mount,
                                         const fs::FileLock& lock);
  // Removes what the owner has in the range.
  static void give_up(HeldLocks& held, std::uint64_t mount, const fs::FileLock& lock);
  // Adds a lock, and merges it with neighbors of the same owner and mode.
  static void add(HeldLocks& held, std::uint64_t mount, fs::FileLock lock);

  mutable SpinLock lock_;
  std::map<std::uint64_t, HeldLocks> held_;
};

}  // namespace perdura::systems::orion
