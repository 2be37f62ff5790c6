// The inodes that a mount holds (fs::Session::hold), shared by its sessions: the MDS learns of the
// first hold of an inode and of the end of the last one.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "platform/runtime/sync.h"

namespace perdura::systems::orion {

class Holds {
 public:
  enum class Outcome : std::uint8_t {
    held,   // it was held before
    first,  // the caller must tell the MDS, and then call told()
    busy,   // another session is telling the MDS; ask again
  };
  Outcome add(std::uint64_t inode) {
    const std::lock_guard guard(lock_);
    Held& held = held_[inode];
    if (held.count == 0 && !held.telling) {
      held.telling = true;
      return Outcome::first;
    }
    if (held.telling) return Outcome::busy;
    ++held.count;
    return Outcome::held;
  }
  // The MDS has been told, and holds the inode if `success`.
  void told(std::uint64_t inode, bool success) {
    const std::lock_guard guard(lock_);
    Held& held = held_[inode];
    held.telling = false;
    if (success) {
      ++held.count;
    } else {
      held_.erase(inode);
    }
  }
  // Adds a hold that the MDS knows of already.
  void made(std::uint64_t inode) {
    const std::lock_guard guard(lock_);
    ++held_[inode].count;
  }
  // Returns true if none is left; then the caller must tell the MDS.
  bool remove(std::uint64_t inode, std::uint64_t count) {
    const std::lock_guard guard(lock_);
    const auto found = held_.find(inode);
    if (found == held_.end() || found->second.count == 0) return false;
    found->second.count -= std::min(found->second.count, count);
    if (found->second.count > 0) return false;
    if (!found->second.telling) held_.erase(found);
    return true;
  }

 private:
  struct Held {
    std::uint64_t count = 0;
    bool telling = false;
  };
  SpinLock lock_;
  std::map<std::uint64_t, Held> held_;
};

}  // namespace perdura::systems::orion
