// A map from 64-bit numbers to small indices; groups operations by key, and reads by version.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace perdura::history {

// Open addressing with a load factor of at most one half. clear() keeps the memory for the next
// key.
class IndexTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void clear(std::size_t expected = 0) {
    const std::size_t slots = std::bit_ceil(2 * expected + 16);
    slots_.assign(slots, Slot{});
    used_ = 0;
  }

  std::uint32_t find(std::uint64_t number) const { return slots_[slot_of(number)].index; }

  // The index of the number; a new number gets the index `fresh`.
  std::uint32_t find_or_add(std::uint64_t number, std::uint32_t fresh) {
    std::size_t slot = slot_of(number);
    if (slots_[slot].index != kNone) return slots_[slot].index;
    if (2 * (used_ + 1) > slots_.size()) {
      grow();
      slot = slot_of(number);
    }
    ++used_;
    slots_[slot] = {number, fresh};
    return fresh;
  }

 private:
  struct Slot {
    std::uint64_t number = 0;
    std::uint32_t index = kNone;
  };

  std::size_t slot_of(std::uint64_t number) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = number * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
    std::size_t slot = hash & mask;
    while (slots_[slot].index != kNone && slots_[slot].number != number) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    slots_.assign(2 * old.size(), Slot{});
    for (const Slot& slot : old) {
      if (slot.index != kNone) slots_[slot_of(slot.number)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::size_t used_ = 0;
};

}  // namespace perdura::history
