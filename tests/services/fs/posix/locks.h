// Advisory locks: locks of ranges, as fcntl() and open-file-description locks, and locks of whole
// files, as flock(). The two kinds do not affect each other.
//
// The owner of a lock is a process for fcntl(): its locks of a file are released when it closes any
// descriptor of the file. Otherwise the owner is an open file, whose locks are released when it is
// closed for the last time. May be used by several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "services/fs/fs.h"

namespace perdura::fs::test {

enum class LockType : std::uint8_t { none, shared, exclusive };  // none: unlocks
enum class LockOwnership : std::uint8_t { process, open_file };

inline constexpr Bytes kLockEnd = kLargestFile + 1;  // after the last byte of any file

struct RangeLock {
  LockType type = LockType::none;
  Bytes begin = 0;
  Bytes end = kLockEnd;  // one past the last byte
  bool operator==(const RangeLock&) const = default;
};

class LockTable {
 public:
  using Owner = const void*;

  // Replaces the owner's locks within the range. resource_unavailable_try_again if a lock of
  // another owner excludes it; invalid_argument for an empty range.
  Result<void> set(InodeNumber inode, Owner owner, const RangeLock& lock);
  // The same, but waits if another lock excludes it: returns false, and `granted` is called once
  // the lock is held, by the thread that makes it available. resource_deadlock_would_occur if the
  // owner would wait for owners that wait for it. Waiting locks are granted in the order of the
  // requests.
  Result<bool> set_or_wait(InodeNumber inode, Owner owner, const RangeLock& lock,
                           std::function<void()> granted);
  // Withdraws the owner's waiting requests, as a signal does.
  void stop_waiting(Owner owner);
  // The first lock that would exclude this one.
  std::optional<RangeLock> test(InodeNumber inode, Owner owner, const RangeLock& lock) const;

  // Locks the whole file. If another lock excludes a change of type, the old lock is lost, as in
  // Linux.
  Result<void> set_whole(InodeNumber inode, Owner owner, LockType type);

  // Releases all locks that an owner has on a file, and its requests that wait for one.
  void release(InodeNumber inode, Owner owner);
  bool is_empty() const;

 private:
  struct Held {
    Owner owner{};
    RangeLock lock{};
  };
  struct File {
    std::vector<Held> ranges;  // ordered by `begin`
    std::vector<Held> whole;
  };
  struct Waiting {
    InodeNumber inode{};
    Owner owner{};
    RangeLock lock{};
    std::function<void()> granted;
  };
  using Calls = std::vector<std::function<void()>>;

  // The lock of another owner that excludes this one; null if none.
  static const Held* excluding(const std::vector<Held>& held, Owner owner, const RangeLock& lock);
  static void replace(std::vector<Held>& held, Owner owner, const RangeLock& lock);
  const std::vector<Held>& ranges_of(InodeNumber inode) const;
  // Returns true if `owner` would wait for itself by waiting for the owners that exclude `by`.
  bool would_deadlock(Owner owner, InodeNumber inode, Owner by, const RangeLock& lock,
                      std::set<Owner>& seen) const;
  // Grants waiting locks that are no longer excluded. Returns the callbacks to call without the
  // mutex.
  Calls grant(InodeNumber inode);
  // Forgets a file without locks.
  void tidy(InodeNumber inode);

  mutable std::mutex mutex_;
  std::map<InodeNumber, File> files_;
  std::list<Waiting> waiting_;  // in the order of the requests
};

}  // namespace perdura::fs::test
