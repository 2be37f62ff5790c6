// Memory of a pool that belongs to no key, which active data objects allocate (MCAS, Table 4).
//
// It is the value of a key of a reserved form, which clients cannot have: 16 bytes, of which the
// last 8 are the memory's offset. So an allocation is durable, whole and gone as a key is, whatever
// the engine, and is found by its offset.
#pragma once

#include <array>
#include <cstring>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas {

// Any number that nobody begins keys with.
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
