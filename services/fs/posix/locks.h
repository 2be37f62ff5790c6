// Advisory locks: of ranges, as fcntl() and open-file-description locks have them, and of whole
// files, as flock() has them. The two kinds do not know of each other.
//
// Who owns a lock is a process for fcntl(), whose locks of a file go when it closes the file by any
// descriptor, and an open file otherwise, whose locks go when it is closed for the last time. May
// be used by several threads.
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

namespace perdura::fs {

enum class LockType : std::uint8_t { none, shared, exclusive };  // none: unlocks
enum class LockOwnership : std::uint8_t { process, open_file };

inline constexpr Bytes kLockEnd = kLargestFile + 1;  // behind any file

struct RangeLock {
  LockType type = LockType::none;
  Bytes begin = 0;
  Bytes end = kLockEnd;  // behind the last byte
  bool operator==(const RangeLock&) const = default;
};

class LockTable {
 public:
  using Owner = const void*;

  // Replaces what the owner has locked of the range. resource_unavailable_try_again if a lock of
  // another owner excludes it; invalid_argument for a range without bytes.
  Result<void> set(InodeNumber inode, Owner owner, const RangeLock& lock);
  // The same; if it must wait, false, and `granted` is called once it has the lock, by the thread
  // that makes way. resource_deadlock_would_occur if it would wait for owners that wait for it.
  // Locks that wait are given in the order in which they were asked for.
  Result<bool> set_or_wait(InodeNumber inode, Owner owner, const RangeLock& lock,
                           std::function<void()> granted);
  // Ends what an owner waits for (a signal).
  void stop_waiting(Owner owner);
  // The lock with the lowest range that would exclude it.
  std::optional<RangeLock> test(InodeNumber inode, Owner owner, const RangeLock& lock) const;

  // Of the whole file. A change of the type that another lock excludes loses the lock, as in Linux.
  Result<void> set_whole(InodeNumber inode, Owner owner, LockType type);

  // All that an owner has locked of a file, and waits for there.
  void release(InodeNumber inode, Owner owner);
  bool is_empty() const;

 private:
  struct Held {
    Owner owner{};
    RangeLock lock{};
  };
  struct File {
    std::vector<Held> ranges;  // ascending by their begins
    std::vector<Held> whole;
  };
  struct Waiting {
    InodeNumber inode{};
    Owner owner{};
    RangeLock lock{};
    std::function<void()> granted;
  };
  using Calls = std::vector<std::function<void()>>;

  // The lock that excludes it, if one does.
  static const Held* excluding(const std::vector<Held>& held, Owner owner, const RangeLock& lock);
  static void replace(std::vector<Held>& held, Owner owner, const RangeLock& lock);
  const std::vector<Held>& ranges_of(InodeNumber inode) const;
  // Whether `owner` would wait for itself if it waited for these.
  bool would_deadlock(Owner owner, InodeNumber inode, Owner by, const RangeLock& lock,
                      std::set<Owner>& seen) const;
  // Gives waiting locks what they may have now.
  Calls grant(InodeNumber inode);
  void tidy(InodeNumber inode);

  mutable std::mutex mutex_;
  std::map<InodeNumber, File> files_;
  std::list<Waiting> waiting_;  // in the order in which they came
};

}  // namespace perdura::fs
