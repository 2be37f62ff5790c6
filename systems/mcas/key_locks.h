// The locks of a pool's keys. A shard is a single thread and executes most requests without
// interruption, so these need no locks. It locks the keys of long-running operations, during which
// it serves other requests: direct transfers and active data objects (MCAS, section 4.2).
//
// A key may have several shared locks or one exclusive lock. Locks of a key are granted in the
// order in which they were requested, so that an exclusive lock is not starved. A task may wait for
// a lock only while it holds no other one, or two tasks could deadlock; a task that holds one must
// use try_lock().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "platform/runtime/sync.h"
#include "services/objects/objects.h"
#include "systems/mcas/spare_nodes.h"

namespace perdura::systems::mcas {

using objects::Key;

enum class LockMode : std::uint8_t { shared, exclusive };

class KeyLocks {
  struct LockedKey;
  struct Less {
    using is_transparent = void;
    bool operator()(Key a, Key b) const;
  };
  // By key. Has only keys that are locked or waited for.
  using LockedKeys = std::map<std::vector<std::byte>, LockedKey, Less>;

 public:
  // A lock that is held until it is destroyed or unlock() is called.
  class Lock {
   public:
    Lock() = default;
    Lock(Lock&& other) noexcept
        : locks_(std::exchange(other.locks_, nullptr)), at_(other.at_), mode_(other.mode_) {}
    Lock& operator=(Lock&& other) noexcept {
      std::swap(locks_, other.locks_);
      std::swap(at_, other.at_);
      std::swap(mode_, other.mode_);
      return *this;
    }
    ~Lock() { unlock(); }
    void unlock() {
      if (locks_ != nullptr) std::exchange(locks_, nullptr)->release(at_, mode_);
    }

   private:
    friend class KeyLocks;
    Lock(KeyLocks& locks, LockedKeys::iterator at, LockMode mode)
        : locks_(&locks), at_(at), mode_(mode) {}
    KeyLocks* locks_ = nullptr;
    LockedKeys::iterator at_{};
    LockMode mode_ = LockMode::shared;
  };

  // True if a lock would be granted at once. An operation without interruptions need not take the
  // lock.
  bool allows(Key key, LockMode mode) const { return entries_.empty() || would_grant(key, mode); }
  std::optional<Lock> try_lock(Key key, LockMode mode);
  // `key` must stay valid until the task has ended.
  Task<Lock> lock(Key key, LockMode mode);

  bool empty() const { return entries_.empty(); }

 private:
  // Lives in the waiting task, which may be destroyed at any time.
  struct Waiter {
    Waiter(KeyLocks& its_locks, LockedKeys::iterator its_entry, LockMode its_mode);
    Waiter(const Waiter&) = delete;
    ~Waiter();
    KeyLocks& locks;
    LockedKeys::iterator at;
    LockMode mode;
    bool granted = false;
    bool taken = false;  // the task has it as a Lock
    WaitList woken{};
  };
  struct LockedKey {
    std::uint32_t shared = 0;
    bool exclusive = false;
    std::deque<Waiter*> waiting{};

    bool grants(LockMode mode) const {
      return !exclusive && (mode == LockMode::shared || shared == 0);
    }
    void grant(LockMode mode) {
      if (mode == LockMode::shared) {
        ++shared;
      } else {
        exclusive = true;
      }
    }
    bool unused() const { return !exclusive && shared == 0 && waiting.empty(); }
  };

  bool would_grant(Key key, LockMode mode) const;
  LockedKeys::iterator entry_of(Key key);
  void release(LockedKeys::iterator at, LockMode mode);
  // Grants the locks that can be granted now, and removes the entry if it is unused.
  void update(LockedKeys::iterator at);

  LockedKeys entries_;
  SpareNodes<LockedKeys> spare_;
};

}  // namespace perdura::systems::mcas
