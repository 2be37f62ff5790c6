// Tracks which numbers of a range, of blocks or of inodes, are free: a bitmap in DRAM, divided into
// one arena for each session, so that sessions seldom wait for each other. A session whose arena is
// full takes from the next one. A clean unmount saves the bitmap; after a failure recovery rebuilds
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "platform/runtime/sync.h"

namespace perdura::systems::nova {

struct Extent {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// How an operation changes the used space in the end. Operations that only change something may use
// half of the reserve, and those that free space all of it, so that a full file system can still be
// changed, and emptied.
enum class Urgency : std::uint8_t { grows, changes, frees };

class Allocator {
 public:
  // Manages the numbers from `first` to `end` - 1, in `arenas` parts. The last `reserve` free
  // numbers are kept for operations that do not grow (Urgency).
  Allocator(std::uint64_t first, std::uint64_t end, std::uint32_t arenas, std::uint64_t reserve);

  // Calls `reclaim` before an allocation that would find nothing free: it may free some. Must be set
  // before the first allocation.
  void reclaim_by(std::function<void()> reclaim) { reclaim_ = std::move(reclaim); }
  // Allocates up to `most` adjacent numbers, preferably that many. Returns a count of 0 if none is
  // free for this urgency.
  Extent allocate(std::uint32_t arena, std::uint64_t most, Urgency urgency);
  void free(std::uint64_t first, std::uint64_t count);

  std::uint64_t free_count() const { return free_.load(std::memory_order_relaxed); }
  std::uint64_t capacity() const { return end_ - first_; }
  // Free numbers without the reserve.
  std::uint64_t available() const {
    const std::uint64_t free = free_count();
    return free - std::min(free, reserve_);
  }

  // --- only while nobody allocates
  bool is_used(std::uint64_t number) const { return (words_[number / 64] >> number % 64 & 1) != 0; }
  // Returns how many of them were used before. May be called by several threads at once.
  std::uint64_t mark_used(std::uint64_t first, std::uint64_t count);
  std::span<const std::uint64_t> words() const { return words_; }
  // Takes over a saved bitmap.
  void assign(std::span<const std::uint64_t> words);

 private:
  struct alignas(64) Arena {
    SpinLock lock;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t next = 0;  // where the search continues
    // Numbers that were freed last and may still be free. A request for one number takes one of
    // them first: its memory may be in the caches, and is mapped.
    std::array<std::uint64_t, 32> recent{};
    std::size_t recent_count = 0;
  };

  Extent take(Arena& arena, std::uint64_t most);
  Extent find(std::uint64_t from, std::uint64_t to, std::uint64_t most, Extent best) const;
  void set(std::uint64_t first, std::uint64_t count, bool used);

  std::uint64_t first_;
  std::uint64_t end_;
  std::uint64_t reserve_;
  std::uint64_t per_arena_;
  std::vector<std::uint64_t> words_;  // a set bit: used
  std::vector<Arena> arenas_;
  std::atomic<std::uint64_t> free_;
  std::function<void()> reclaim_;
};

}  // namespace perdura::systems::nova
