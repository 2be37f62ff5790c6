// The fixed slot of the hash indexes that "Consistent RDMA-Friendly Hashing on Remote Persistent
// Memory" compares (section III): a key of up to 16 bytes and a value of up to 15 in 32 bytes, half
// a cache line, so that an item is written back by one flush.
//
//      0                 16               31        32
//      +-----------------+----------------+---------+
//      | key, zeros      | value, zeros   | lengths |      lengths: key's less 1, value's, 4 bits
//      each
//      +-----------------+----------------+---------+
//
// Whether a slot is occupied is the index's to say; any bytes are a slot.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "platform/runtime/work.h"
#include "platform/units.h"
#include "systems/kv.h"

namespace perdura::systems::bucket_hash {

inline constexpr Bytes kMaxKeySize = 16;
inline constexpr Bytes kMaxValueSize = 15;

struct Slot {
  std::array<std::byte, kMaxKeySize> key{};
  std::array<std::byte, kMaxValueSize> value{};
  std::uint8_t lengths = 0;

  // The sizes must fit.
  static Slot of(Key key, Value value = {}) {
    Slot slot;
    copy_bytes(std::span(slot.key).first(key.size()), key);
    copy_bytes(std::span(slot.value).first(value.size()), value);
    slot.lengths = static_cast<std::uint8_t>((key.size() - 1) << 4 | value.size());
    return slot;
  }
  // No key is empty, so that 4 bits hold its length.
  static bool takes_key(Key key) { return !key.empty() && key.size() <= kMaxKeySize; }
  static bool takes(Key key, Value value) {
    return takes_key(key) && value.size() <= kMaxValueSize;
  }

  Key key_bytes() const { return std::span(key).first((lengths >> 4) + 1U); }
  Value value_bytes() const { return std::span(value).first(lengths & 0xFU); }
  bool same_key(const Slot& other) const {
    charge(Work::compare, key_bytes().size());
    // Behind a key are zeros.
    return lengths >> 4 == other.lengths >> 4 && std::memcmp(&key, &other.key, sizeof key) == 0;
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
};
static_assert(sizeof(Slot) == 32 && std::is_trivially_copyable_v<Slot>);

inline constexpr Bytes kSlotSize = sizeof(Slot);

}  // namespace perdura::systems::bucket_hash
