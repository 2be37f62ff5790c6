// The holds of the clients' mounts (fs::Session::hold), on inodes that live on without names. A mount has
// a session for each of its threads; what one of them holds another may release. When the last
// session of a mount has ended, so have its holds. Shared by the threads of the MDS.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "platform/runtime/sync.h"

namespace perdura::systems::orion {

// The numbers of holds, by inode.
using HoldCounts = std::map<std::uint64_t, std::uint64_t>;

class Mounts {
 public:
  // Mounts are numbered from here, excluded. Called before any other function.
  void number_from(std::uint64_t number) { last_ = number; }
  std::uint64_t new_mount() {
    const std::lock_guard guard(lock_);
    return ++last_;
  }
  void session_begins(std::uint64_t mount) {
    const std::lock_guard guard(lock_);
    ++mounts_[mount].sessions;
  }
  // Returns the holds that end with this session; nullopt if its mount has others.
  std::optional<HoldCounts> session_ends(std::uint64_t mount) {
    const std::lock_guard guard(lock_);
    const auto found = mounts_.find(mount);
    if (found == mounts_.end() || --found->second.sessions > 0) return std::nullopt;
    HoldCounts holds = std::move(found->second.holds);
    mounts_.erase(found);
    return holds;
  }
  bool has_hold(std::uint64_t mount, std::uint64_t inode) {
    const std::lock_guard guard(lock_);
    const auto found = mounts_.find(mount);
    return found != mounts_.end() && found->second.holds.contains(inode);
  }
  void add_hold(std::uint64_t mount, std::uint64_t inode) {
    const std::lock_guard guard(lock_);
    ++mounts_[mount].holds[inode];
  }
  // Removes up to so many holds, and returns how many it has removed.
  std::uint64_t remove_holds(std::uint64_t mount, std::uint64_t inode, std::uint64_t most) {
    const std::lock_guard guard(lock_);
    HoldCounts& holds = mounts_[mount].holds;
    const auto found = holds.find(inode);
    if (found == holds.end()) return 0;
    const std::uint64_t removed = std::min(most, found->second);
    if ((found->second -= removed) == 0) holds.erase(found);
    return removed;
  }

 private:
  struct Mount {
    std::uint32_t sessions = 0;
    HoldCounts holds{};
  };
  SpinLock lock_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Mount> mounts_;
};

}  // namespace perdura::systems::orion
