// The fixed-size slot of the hash indexes that "Consistent RDMA-Friendly Hashing on Remote
// Persistent Memory" compares (section III): a key of up to 16 bytes and a value of up to 15 bytes
// in 32 bytes. A slot is half a cache line, so one flush writes an item back.
//
//      0                 16               31        32
//      +-----------------+----------------+---------+
//      | key, zeros      | value, zeros   | lengths |
//      +-----------------+----------------+---------+
//
//      lengths: the key's less 1, and the value's, 4 bits each
//
// The index records elsewhere if a slot is occupied; any 32 bytes are a valid slot.
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

  // The key and the value must fit (takes()).
  static Slot of(kv::Key key, kv::Value value = {}) {
    Slot slot;
    copy_bytes(std::span(slot.key).first(key.size()), key);
    copy_bytes(std::span(slot.value).first(value.size()), value);
    slot.lengths = static_cast<std::uint8_t>((key.size() - 1) << 4 | value.size());
    return slot;
  }
  // An empty key is not allowed, so that 4 bits are enough for a key's length.
  static bool takes_key(kv::Key key) { return !key.empty() && key.size() <= kMaxKeySize; }
  static bool takes(kv::Key key, kv::Value value) {
    return takes_key(key) && value.size() <= kMaxValueSize;
  }

  kv::Key key_bytes() const { return std::span(key).first((lengths >> 4) + 1U); }
  kv::Value value_bytes() const { return std::span(value).first(lengths & 0xFU); }
  bool same_key(const Slot& other) const;
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
};
static_assert(sizeof(Slot) == 32 && std::is_trivially_copyable_v<Slot>);

inline constexpr Bytes kSlotSize = sizeof(Slot);

// A slot as the four words in which memory is read. Keys and values are padded with zeros, so that
// whole words can be hashed and compared.
//
// The conversions between words and slots avoid store-forwarding stalls, which compilers would
// produce: a load that spans several recent smaller stores waits until those have left the store
// buffer, and so would serialize the cache misses of consecutive searches.
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
  std::uint64_t length = 0;  // the key's length less 1

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
