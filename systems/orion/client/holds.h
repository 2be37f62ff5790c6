// The inodes that a mount holds (fs::Session::hold), shared by its sessions: the MDS learns of the
// first hold of an inode and of the end of the last one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

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
  void told(std::uint64_t inode, bool success, std::uint64_t generation) {
    const std::lock_guard guard(lock_);
    Held& held = held_[inode];
    held.telling = false;
    if (success) {
      ++held.count;
      held.generation = generation;
    } else {
      held_.erase(inode);
    }
  }
  // Adds a hold that the MDS knows of already.
  void made(std::uint64_t inode, std::uint64_t generation) {
    const std::lock_guard guard(lock_);
    Held& held = held_[inode];
    ++held.count;
    held.generation = generation;
  }
  // Returns true if none is left; then the caller must tell the MDS.
  bool remove(std::uint64_t inode, std::uint64_t count) {
    const std::lock_guard guard(lock_);
    const auto found = held_.find(inode);
    if (found == held_.end() || found->second.count == 0) return false;
    found->second.count -= std::min(found->second.count, count);
    if (found->second.count > 0) return false;
    const bool is_lost = found->second.is_lost;
    if (is_lost) lost_.fetch_sub(1, std::memory_order_relaxed);
    if (!found->second.telling) held_.erase(found);
    return !is_lost;
  }

  // --- after a connection to the MDS has broken
  struct One {
    std::uint64_t inode = 0;
    std::uint64_t generation = 0;
  };
  std::vector<One> all() {
    const std::lock_guard guard(lock_);
    std::vector<One> all;
    for (const auto& [inode, held] : held_) {
      if (held.count > 0 && !held.is_lost) all.push_back({inode, held.generation});
    }
    return all;
  }
  // The inode is gone, though it was held. Whoever holds it must not meet another one that has got its
  // number: until it is released, the number stands for none.
  void lose(std::uint64_t inode) {
    const std::lock_guard guard(lock_);
    const auto found = held_.find(inode);
    if (found == held_.end() || std::exchange(found->second.is_lost, true)) return;
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
  bool is_lost(std::uint64_t inode) {
    if (lost_.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard guard(lock_);
    const auto found = held_.find(inode);
    return found != held_.end() && found->second.is_lost;
  }

 private:
  struct Held {
    std::uint64_t count = 0;
    bool telling = false;
    std::uint64_t generation = 0;
    bool is_lost = false;
  };
  SpinLock lock_;
  std::atomic<std::uint64_t> lost_{0};
  std::map<std::uint64_t, Held> held_;
};

}  // namespace perdura::systems::orion
