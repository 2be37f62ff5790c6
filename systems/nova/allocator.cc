#include "systems/nova/allocator.h"

#include <algorithm>
#include <bit>

namespace perdura::systems::nova {

Allocator::Allocator(std::uint64_t first, std::uint64_t end, std::uint32_t arenas,
                     std::uint64_t reserve)
    : first_(first),
      end_(end),
      reserve_(reserve),
      // In whole words, so that no two arenas share one.
      per_arena_(std::max<std::uint64_t>(1, (end + arenas * 64 - 1) / (arenas * 64)) * 64),
      words_((end + 63) / 64),
      arenas_(arenas),
      free_(end - first) {
  for (std::uint32_t i = 0; i < arenas; ++i) {
    Arena& arena = arenas_[i];
    arena.begin = std::clamp(i * per_arena_, first, end);
    arena.end = std::clamp((i + 1) * per_arena_, first, end);
    arena.next = arena.begin;
  }
  set(0, first, true);
  if (end % 64 != 0) set(end, 64 - end % 64, true);
}

Extent Allocator::allocate(std::uint32_t arena, std::uint64_t most, Urgency urgency) {
  // The free count is reduced before the search, so that the reserve stays.
  const std::uint64_t keep = urgency == Urgency::frees     ? 0
                             : urgency == Urgency::changes ? reserve_ / 2
                                                           : reserve_;
  std::uint64_t free = free_.load(std::memory_order_relaxed);
  if (free <= keep && reclaim_) [[unlikely]] {
    reclaim_();
    free = free_.load(std::memory_order_relaxed);
  }
  std::uint64_t wanted = 0;
  do {
    if (free <= keep) return {};
    wanted = std::min(most, free - keep);
  } while (!free_.compare_exchange_weak(free, free - wanted, std::memory_order_relaxed));
  Extent found;
  // Others allocate and free meanwhile, so the numbers counted may be in any arena.
  for (std::size_t i = 0; found.count == 0; ++i) {
    found = take(arenas_[(arena + i) % arenas_.size()], wanted);
  }
  if (found.count < wanted) free_.fetch_add(wanted - found.count, std::memory_order_relaxed);
  return found;
}

Extent Allocator::take(Arena& arena, std::uint64_t most) {
  arena.lock.lock();
  while (most == 1 && arena.recent_count > 0) {
    const std::uint64_t number = arena.recent[--arena.recent_count];
    if (is_used(number)) continue;
    set(number, 1, true);
    arena.lock.unlock();
    return {number, 1};
  }
  Extent found = find(arena.next, arena.end, most, {});
  if (found.count < most) found = find(arena.begin, arena.next, most, found);
  if (found.count > 0) {
    set(found.first, found.count, true);
    arena.next = found.first + found.count;
    if (arena.next >= arena.end) arena.next = arena.begin;
  }
  arena.lock.unlock();
  return found;
}

Extent Allocator::find(std::uint64_t from, std::uint64_t to, std::uint64_t most,
                       Extent best) const {
  constexpr int kRuns = 256;  // after that many, the best run so far is taken
  int runs = 0;
  while (from < to) {
    const std::uint64_t free = ~words_[from / 64] >> from % 64;
    if (free == 0) {
      from += 64 - from % 64;
      continue;
    }
    from += static_cast<std::uint64_t>(std::countr_zero(free));
    const std::uint64_t first = from;
    while (from < to && from - first < most) {
      const std::uint64_t used = words_[from / 64] >> from % 64;
      if (used != 0) {
        from += static_cast<std::uint64_t>(std::countr_zero(used));
        break;
      }
      from += 64 - from % 64;
    }
    from = std::min({from, to, first + most});
    if (from > first && from - first > best.count) best = {first, from - first};
    if (best.count == most || ++runs == kRuns) break;
  }
  return best;
}

void Allocator::free(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t all = count;
  while (count > 0) {
    Arena& arena = arenas_[first / per_arena_];
    const std::uint64_t part = std::min(count, arena.end - first);
    arena.lock.lock();
    set(first, part, false);
    if (part == 1 && arena.recent_count < arena.recent.size()) {
      arena.recent[arena.recent_count++] = first;
    }
    arena.lock.unlock();
    first += part;
    count -= part;
  }
  free_.fetch_add(all, std::memory_order_relaxed);
}

void Allocator::set(std::uint64_t first, std::uint64_t count, bool used) {
  while (count > 0) {
    const std::uint64_t part = std::min(count, 64 - first % 64);
    const std::uint64_t mask = (part == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << part) - 1)
                               << first % 64;
    if (used) {
      words_[first / 64] |= mask;
    } else {
      words_[first / 64] &= ~mask;
    }
    first += part;
    count -= part;
  }
}

std::uint64_t Allocator::mark_used(std::uint64_t first, std::uint64_t count) {
  std::uint64_t used = 0;
  for (std::uint64_t left = count; left > 0;) {
    const std::uint64_t part = std::min(left, 64 - first % 64);
    const std::uint64_t mask = (part == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << part) - 1)
                               << first % 64;
    const std::uint64_t before =
        std::atomic_ref(words_[first / 64]).fetch_or(mask, std::memory_order_relaxed);
    used += static_cast<std::uint64_t>(std::popcount(before & mask));
    first += part;
    left -= part;
  }
  free_.fetch_sub(count - used, std::memory_order_relaxed);
  return used;
}

void Allocator::assign(std::span<const std::uint64_t> words) {
  std::copy_n(words.begin(), std::min(words.size(), words_.size()), words_.begin());
  set(0, first_, true);
  if (end_ % 64 != 0) set(end_, 64 - end_ % 64, true);
  std::uint64_t used = 0;
  for (const std::uint64_t word : words_) used += static_cast<std::uint64_t>(std::popcount(word));
  free_ = words_.size() * 64 - used;
}

}  // namespace perdura::systems::nova
