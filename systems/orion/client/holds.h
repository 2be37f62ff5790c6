// The inodes that a mount holds (fs::Session::hold), shared by its sessions: the MDS learns of the
// first hold of an inode and of the end of the last one.
//
// Holds are not durable. After a failure of the MDS an inode that had no name may be gone, and its number
// another one's, while the kernel still knows it by that number. So a mount tells inodes apart that
// have had the same number: the upper bits of an inode's identity say how often its number was lost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/runtime/sync.h"
#include "services/fs/fs.h"

namespace perdura::systems::orion {

inline constexpr unsigned kNumberBits = 40;

inline std::uint64_t number_of(fs::InodeNumber inode) {
  return static_cast<std::uint64_t>(inode) & ((std::uint64_t{1} << kNumberBits) - 1);
}

class Holds {
 public:
  // Returns the identity of the inode that has this number now.
  fs::InodeNumber identity(std::uint64_t number) {
    if (!has_lost_) return fs::InodeNumber{number};
    const std::lock_guard guard(lock_);
    return fs::InodeNumber{number | losses_of(number) << kNumberBits};
  }

  enum class Outcome : std::uint8_t {
    held,   // it was held before
    first,  // the caller must tell the MDS, and then call told()
    busy,   // another session is telling the MDS; ask again
  };
  Outcome add(fs::InodeNumber inode) {
    const std::lock_guard guard(lock_);
    Held& held = held_of(inode);
    if (held.count == 0 && !held.telling) {
      held.telling = true;
      return Outcome::first;
    }
    if (held.telling) return Outcome::busy;
    ++held.count;
    return Outcome::held;
  }
  // The MDS has been told, and holds the inode if `success`.
  void told(fs::InodeNumber inode, bool success, std::uint64_t generation) {
    const std::lock_guard guard(lock_);
    Held& held = held_of(inode);
    held.telling = false;
    if (success) {
      ++held.count;
      held.generation = generation;
    } else {
      held_.erase(inode);
    }
  }
  // Adds a hold that the MDS knows of already.
  void made(fs::InodeNumber inode, std::uint64_t generation) {
    const std::lock_guard guard(lock_);
    Held& held = held_of(inode);
    ++held.count;
    held.generation = generation;
  }
  // Returns true if none is left; then the caller must tell the MDS.
  bool remove(fs::InodeNumber inode, std::uint64_t count) {
    const std::lock_guard guard(lock_);
    const auto found = held_.find(inode);
    if (found == held_.end() || found->second.count == 0) return false;
    found->second.count -= std::min(found->second.count, count);
    if (found->second.count > 0) return false;
    const bool is_lost = found->second.is_lost;
    if (!found->second.telling) held_.erase(found);
    return !is_lost;
  }

  // --- after a connection to the MDS has broken
  // How the sessions of the mount were connected at some time: how often one of them has connected again,
  // and the last MDS to which one has, as a number that grows (opened_of()).
  struct Connections {
    std::uint64_t again = 0;
    std::uint64_t mds = 0;
  };
  Connections connections() {
    const std::lock_guard guard(lock_);
    return connections_;
  }
  // True if an inode that the MDS has held since then, for a session connected to `mds`, may be unknown to
  // the present MDS: another session has connected again, and knew nothing of it.
  bool is_late(const Connections& since, std::uint64_t mds) {
    const std::lock_guard guard(lock_);
    return connections_.again != since.again || connections_.mds > mds;
  }
  struct One {
    fs::InodeNumber inode{};
    std::uint64_t generation = 0;
    std::uint64_t order = 0;  // differs if it has been given up and is held anew
  };
  // A session has connected to this MDS again, and holds again what is returned.
  std::vector<One> all(std::uint64_t mds) {
    const std::lock_guard guard(lock_);
    ++connections_.again;
    connections_.mds = std::max(connections_.mds, mds);
    std::vector<One> all;
    for (const auto& [inode, held] : held_) {
      if (held.count > 0 && !held.is_lost) all.push_back({inode, held.generation, held.order});
    }
    return all;
  }
  // While one of all() is asked for, other sessions may give it up, and what has got its number by then
  // may be held anew.
  bool is_given_up(const One& one) {
    const std::lock_guard guard(lock_);
    return find(one) == nullptr;
  }
  // The inode is gone. Whoever holds it must not meet another one that has got its number: that has
  // another identity.
  void lose(const One& one) {
    const std::lock_guard guard(lock_);
    Held* const held = find(one);
    if (held == nullptr || std::exchange(held->is_lost, true)) return;
    ++losses_[number_of(one.inode)];
    has_lost_ = true;
  }
  bool is_lost(fs::InodeNumber inode) {
    if (!has_lost_) return false;
    const std::lock_guard guard(lock_);
    return static_cast<std::uint64_t>(inode) >> kNumberBits != losses_of(number_of(inode));
  }

 private:
  struct Held {
    std::uint64_t count = 0;
    bool telling = false;
    std::uint64_t generation = 0;
    std::uint64_t order = 0;
    bool is_lost = false;
  };
  Held& held_of(fs::InodeNumber inode) {
    const auto [found, is_new] = held_.try_emplace(inode);
    if (is_new) found->second.order = ++last_order_;
    return found->second;
  }
  Held* find(const One& one) {
    const auto found = held_.find(one.inode);
    return found == held_.end() || found->second.order != one.order ? nullptr : &found->second;
  }
  std::uint64_t losses_of(std::uint64_t number) const {
    const auto found = losses_.find(number);
    return found == losses_.end() ? 0 : found->second;
  }

  SpinLock lock_;
  Connections connections_;
  std::atomic<bool> has_lost_{false};
  std::uint64_t last_order_ = 0;
  std::map<fs::InodeNumber, Held> held_;
  std::map<std::uint64_t, std::uint64_t> losses_;  // how often a number was lost, if it was
};

}  // namespace perdura::systems::orion
