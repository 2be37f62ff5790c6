// Memory of a pool that belongs to no key, allocated by active data objects (MCAS, Table 4).
//
// It is stored as the value of a key of a reserved form, which clients cannot use: 16 bytes, of
// which the last 8 are the memory's offset. So, with any engine, allocating and freeing are as
// durable and atomic as putting and erasing a key, and an allocation is found by its offset.
#pragma once

#include <array>
#include <cstring>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas {

// An arbitrary number with which no one's keys are likely to begin.
inline constexpr std::uint64_t kAllocationMark = 0x9D4C'17E8'F3A2'6B01;

using AllocationKey = std::array<std::byte, 16>;

inline AllocationKey allocation_key(Bytes offset) {
  AllocationKey key;
  std::memcpy(key.data(), &kAllocationMark, kWord);
  std::memcpy(key.data() + kWord, &offset, kWord);
  return key;
}

inline bool is_allocation(std::span<const std::byte> key) {
  return key.size() == sizeof(AllocationKey) &&
         std::memcmp(key.data(), &kAllocationMark, kWord) == 0;
}

}  // namespace perdura::systems::mcas
