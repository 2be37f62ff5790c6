// The advisory locks of a mount's programs, if the file system has locks over all mounts
// (services/fs/locks.h). The kernel asks for each lock, and a program may wait for one.
//
// A thread that answers requests must not wait for a lock: the program that is to give it up needs a
// thread, too. So programs wait on a thread of their own, which asks again and again, the less often
// the longer it takes. A thread that wants to end meanwhile is interrupted, and told so.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "mount/connection.h"
#include "services/fs/locks.h"

namespace perdura::mount {

// Connects a session to its servers. Throws PlatformError if they do not take it.
Task<> connect(fs::Session& session);

class MountLocks {
 public:
  // Starts the thread, with an endpoint at this port of the node.
  MountLocks(Node& node, fabric::Port port, std::shared_ptr<fs::FileSystem> files);
  ~MountLocks();
  MountLocks(const MountLocks&) = delete;
  MountLocks& operator=(const MountLocks&) = delete;

  // Connects the thread's session. To be awaited once, before all others. Throws PlatformError.
  Task<> begin();
  // Begins to wait for a lock, and answers the request when it is there. `descriptor`: where the
  // request was read.
  Task<> await(fuse_req_t request, int descriptor, fs::InodeNumber inode, fs::FileLock lock);
  // Ends all waiting. To be awaited before the object is destroyed.
  Task<> end();

  // Owners that may have locks of an inode: when a file is closed, only those are asked for.
  void note(fs::InodeNumber inode, const fs::FileLock& lock);
  // Returns true if the owner was noted, and forgets it.
  bool forget(fs::InodeNumber inode, fs::LockKind kind, std::uint64_t owner);
  // The kernel has forgotten the inode, so no program has it open.
  void forget(fs::InodeNumber inode);

 private:
  struct LockOwner {
    fs::InodeNumber inode{};
    fs::LockKind kind{};
    std::uint64_t owner = 0;
    auto operator<=>(const LockOwner&) const = default;
  };

  Task<> open();
  // Owns the session as long as it is used: it must be destroyed by its thread.
  Task<> keep(std::unique_ptr<fs::Session> session);
  Task<> ask(fuse_req_t request, int descriptor, fs::InodeNumber inode, fs::FileLock lock);
  Task<> close();

  std::shared_ptr<fs::FileSystem> files_;
  std::atomic<bool> ended_{false};
  // Used by the thread only.
  fs::Session* session_ = nullptr;
  WaitList closing_;
  int waiting_ = 0;

  std::mutex mutex_;
  std::set<LockOwner> owners_;

  // Destroyed before everything that its tasks use.
  std::unique_ptr<BackgroundThread> thread_;
};

}  // namespace perdura::mount
