// The locks with which several workers change one index ("Consistent RDMA-Friendly Hashing on
// Remote Persistent Memory", section III: "The average latency of writes increases with the number
// of threads due to locking mechanism"). They are in DRAM: after a crash nobody holds one, and what
// an interrupted operation left is the business of the index's recovery.
//
// A worker first enters, which it cannot while another one has the exclusive lock in order to
// resize; then it locks the buckets, segment pairs or whatever the index changes as a whole, by
// their numbers. Between the two the shape of the index does not change. Nothing suspends while a
// bucket is locked, so that a lock is held for the time of one operation, and waiting for it is
// spinning; a resize takes long, so waiting for its end gives the thread to other tasks.
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
  // Workers have numbers from 0 on.
  explicit LockTable(std::uint32_t workers) : gates_(workers), locks_(kLocks) {}

  // A worker is inside.
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
  // Waits while another worker has the exclusive lock.
  Task<Entry> enter(std::uint32_t worker);

  // One worker has the whole index, and may suspend meanwhile.
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
  // Waits until nobody is inside. What the caller saw of the index before it entered may not hold
  // any more: another worker may have resized it.
  Task<ExclusiveLock> lock_exclusively();

  // The locks of some things, for a worker that is inside. Two things may share a lock.
  class Held {
   public:
    static constexpr std::size_t kMost = 16;

    // Waits for all. They are taken in one order everywhere, so nobody waits in a circle.
    Held(LockTable& table, std::span<const std::uint64_t> things);
    Held(LockTable& table, std::uint64_t thing) : Held(table, std::span(&thing, 1)) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held();

    // One more that is found to be needed on the way; false, without waiting, if another worker has
    // it. Then the caller lets go of all and begins again with this one among its things.
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
  // Few enough for a resize and for the caches, many enough that two operations seldom meet.
  static constexpr std::uint32_t kLocks = 1024;

  static std::uint32_t lock_of(std::uint64_t thing) {
    return static_cast<std::uint32_t>(thing % kLocks);
  }
  void pass_gates();
  void open();

  std::vector<PaddedLock> gates_;  // by worker, who is inside while it holds its own
  std::vector<PaddedLock> locks_;
  std::atomic<bool> closed_{false};
};

}  // namespace perdura::systems::bucket_hash
