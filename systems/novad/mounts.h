// The mounts of clients, as the server knows them, and what they hold (fs::Session::hold). A mount
// has a session for each of its threads; what one of them holds another may release. The holds of a
// mount end with its last session.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace perdura::systems::novad {

class Mounts {
 public:
  struct Hold {
    std::uint64_t count = 0;
    // A combination of fs::kMayRead and fs::kMayWrite: for what anybody has opened the file. One
    // that nobody has opened for anything is not bound.
    std::uint32_t rights = 0;
  };
  using Holds = std::map<std::uint64_t, Hold>;  // by inode

  // Numbers are not those of a server's earlier life if `least` is greater than all of them.
  std::uint64_t new_mount(std::uint64_t least) { return last_ = std::max(last_ + 1, least); }
  // `is_local`: what the mount holds gets no filekeys.
  void session_begins(std::uint64_t mount, bool is_local) {
    ++mounts_[mount].sessions;
    mounts_[mount].is_local = is_local;
  }
  bool is_local(std::uint64_t mount) { return mounts_[mount].is_local; }
  // Returns the holds that end with the session; none if the mount has other sessions.
  Holds session_ends(std::uint64_t mount) {
    const auto found = mounts_.find(mount);
    if (found == mounts_.end() || --found->second.sessions > 0) return {};
    Holds holds = std::move(found->second.holds);
    mounts_.erase(found);
    return holds;
  }
  // Returns the rights that the mount had before.
  std::uint32_t add_hold(std::uint64_t mount, std::uint64_t inode, std::uint32_t rights) {
    Hold& hold = mounts_[mount].holds[inode];
    ++hold.count;
    return std::exchange(hold.rights, hold.rights | rights);
  }
  bool has_hold(std::uint64_t mount, std::uint64_t inode) {
    return mounts_[mount].holds.contains(inode);
  }
  // None of a file that the mount does not hold.
  std::uint32_t rights(std::uint64_t mount, std::uint64_t inode) {
    const Holds& holds = mounts_[mount].holds;
    const auto found = holds.find(inode);
    return found == holds.end() ? 0 : found->second.rights;
  }
  // Removes up to so many holds, and returns how many it has removed.
  std::uint64_t remove_holds(std::uint64_t mount, std::uint64_t inode, std::uint64_t most) {
    Holds& holds = mounts_[mount].holds;
    const auto found = holds.find(inode);
    if (found == holds.end()) return 0;
    const std::uint64_t removed = std::min(most, found->second.count);
    if ((found->second.count -= removed) == 0) holds.erase(found);
    return removed;
  }

 private:
  struct Mount {
    std::uint32_t sessions = 0;
    bool is_local = false;
    Holds holds{};
  };
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Mount> mounts_;
};

}  // namespace perdura::systems::novad
