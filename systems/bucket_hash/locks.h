// The locks with which several workers change one index ("Consistent RDMA-Friendly Hashing on
// Remote Persistent Memory", section III: "The average latency of writes increases with the number
// of threads due to locking mechanism"). They are in DRAM, so a crash releases them all; the
// index's recovery repairs what an interrupted operation left.
//
// A worker first enters the index, for which it waits while another worker has the exclusive lock.
// Then it locks, by number, the units that the index changes as a whole, such as buckets or segment
// pairs. A task never suspends while it is inside, so it is there for less than one operation, and
// waiting for a unit's lock, or for others to leave, spins.
//
// The table in use does not change while a worker is inside. Of several workers that find no room
// in it, one upgrades its shared lock to the exclusive lock and resizes; the others leave, enter the
// new table and try again. A resize takes long, so waiting for its end suspends the task and lets
// others run on the thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "platform/base/units.h"
#include "platform/runtime/sync.h"

namespace perdura::systems::bucket_hash {

class LockTable {
 public:
  // `workers` is the number of workers; they are numbered from 0.
  explicit LockTable(std::uint32_t workers) : gates_(workers), locks_(kLocks) {}

  // While this lives, its worker is inside the index.
  class SharedLock {
   public:
    SharedLock(SharedLock&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    SharedLock& operator=(SharedLock&&) = delete;
    ~SharedLock() { leave(); }

   private:
    friend class LockTable;
    explicit SharedLock(SpinLock& gate) : gate_(&gate) {}
    void leave() {
      if (SpinLock* const gate = std::exchange(gate_, nullptr)) gate->unlock();
    }
    SpinLock* gate_;
  };
  // Suspends while another worker holds the exclusive lock.
  Task<SharedLock> enter(std::uint32_t worker);

  // While this lives, its worker has the whole index to itself, and may suspend.
  class ExclusiveLock {
   public:
    ExclusiveLock(ExclusiveLock&& other) noexcept : table_(std::exchange(other.table_, nullptr)) {}
    ExclusiveLock& operator=(ExclusiveLock&&) = delete;
    ~ExclusiveLock() {
      if (table_ != nullptr) table_->open();
    }

   private:
    friend class LockTable;
    explicit ExclusiveLock(LockTable& table) : table_(&table) {}
    LockTable* table_;
  };
  // The worker leaves, and waits until no other is inside; the table in use is still the same.
  // Returns nullopt if another worker was faster, which will have resized when this one can enter
  // again.
  std::optional<ExclusiveLock> upgrade(SharedLock shared);

  // The locks of several units of the index, for a worker that is inside. Two units may share a
  // lock.
  class Held {
   public:
    static constexpr std::size_t kMost = 16;

    // Waits for all of them. They are acquired in ascending order, so workers cannot deadlock.
    Held(LockTable& table, std::span<const std::uint64_t> things);
    Held(LockTable& table, std::uint64_t thing) : Held(table, std::span(&thing, 1)) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held();

    // Locks one more unit, the need for which shows only during the operation. Does not wait:
    // returns false if another worker holds its lock. The caller then releases all locks and starts
    // over, with this unit among those that it locks.
    bool try_add(std::uint64_t thing);

   private:
    bool has(std::uint32_t lock) const;

    LockTable& table_;
    std::array<std::uint32_t, kMost> locks_{};
    std::size_t count_ = 0;
  };

 private:
  struct alignas(kCacheLine) PaddedLock {
    SpinLock lock;
  };
  // Few enough to stay in the caches, and enough that two operations seldom contend for the same
  // lock.
  static constexpr std::uint32_t kLocks = 1024;

  static std::uint32_t lock_of(std::uint64_t thing) {
    return static_cast<std::uint32_t>(thing % kLocks);
  }
  void pass_gates();
  void open();

  std::vector<PaddedLock> gates_;  // one per worker, which holds its own while it is inside
  std::vector<PaddedLock> locks_;
  std::atomic<bool> closed_{false};
};

}  // namespace perdura::systems::bucket_hash
