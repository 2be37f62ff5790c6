// The locks with which several workers change one index ("Consistent RDMA-Friendly Hashing on
// Remote Persistent Memory", section III: "The average latency of writes increases with the number
// of threads due to locking mechanism"). They are in DRAM, so a crash releases them all; the
// index's recovery repairs what an interrupted operation left.
//
// A worker first enters the index, for which it waits while another worker holds the exclusive lock
// in order to resize. Then it locks, by number, the units that the index changes as a whole, such
// as buckets or segment pairs. The table in use does not change while a worker is inside. A task
// never suspends while it holds a unit's lock, so such a lock is held for less than one operation,
// and waiting for it spins. A resize takes long, so waiting for the exclusive lock suspends the
// task and lets others run on the thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
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
  class Entry {
   public:
    Entry(Entry&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Entry& operator=(Entry&&) = delete;
    ~Entry() {
      if (gate_ != nullptr) gate_->unlock();
    }

   private:
    friend class LockTable;
    explicit Entry(SpinLock& gate) : gate_(&gate) {}
    SpinLock* gate_;
  };
  // Suspends while another worker holds the exclusive lock.
  Task<Entry> enter(std::uint32_t worker);

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
  // Waits until no worker is inside. Another worker may have resized the index meanwhile, so the
  // caller must check again what it knew of it.
  Task<ExclusiveLock> lock_exclusively();

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

    // Locks one more unit whose need shows only during the operation. Does not wait: returns false
    // if another worker holds its lock. The caller then releases all locks and starts over with
    // this unit among those that it locks.
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

  std::vector<PaddedLock> gates_;  // one a worker, which holds its own while it is inside
  std::vector<PaddedLock> locks_;
  std::atomic<bool> closed_{false};
};

}  // namespace perdura::systems::bucket_hash
