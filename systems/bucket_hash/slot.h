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

#include <emmintrin.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "platform/base/units.h"
#include "platform/runtime/work.h"
#include "services/kv/kv.h"

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
  bool same_key(const Slot& other) const;
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
};
static_assert(sizeof(Slot) == 32 && std::is_trivially_copyable_v<Slot>);

inline constexpr Bytes kSlotSize = sizeof(Slot);

// A slot as its words, as memory is read. Keys and values are filled with zeros, so whole words are
// hashed and compared.
//
// Copies between words and slots take care of what compilers would not: a load that takes together
// what has just been stored in parts waits until everything before it is done, and so makes
// searches wait for one another's cache misses.
using SlotWords = std::array<std::uint64_t, kSlotSize / kWord>;
inline SlotWords words_of(const Slot& slot) { return std::bit_cast<SlotWords>(slot); }
inline Slot slot_of(const SlotWords& words) {
  const auto pair = [&words](std::size_t i) {
    return _mm_set_epi64x(static_cast<std::int64_t>(words[i + 1]),
                          static_cast<std::int64_t>(words[i]));
  };
  return std::bit_cast<Slot>(std::array{pair(0), pair(2)});
}

struct KeyWords {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t length = 0;  // less 1

  static KeyWords of(const Slot& slot) {
    const auto word_at = [&slot](Bytes offset) {
      std::uint64_t word = 0;
      std::memcpy(&word, slot.key.data() + offset, kWord);
      asm("" : "+r"(word));
      return word;
    };
    return {word_at(0), word_at(kWord), std::uint64_t{slot.lengths} >> 4};
  }
  static KeyWords of(const SlotWords& slot) { return {slot[0], slot[1], slot[3] >> 60}; }
  bool same(const KeyWords& other) const {
    charge(Work::compare, length + 1);
    return ((low ^ other.low) | (high ^ other.high) | (length ^ other.length)) == 0;
  }
};

inline bool Slot::same_key(const Slot& other) const {
  return KeyWords::of(*this).same(KeyWords::of(other));
}

}  // namespace perdura::systems::bucket_hash
