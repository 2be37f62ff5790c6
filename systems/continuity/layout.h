// The layout of a continuity hash table ("Consistent RDMA-Friendly Hashing on Remote Persistent
// Memory", section II), and the search of a client, which finds a key by one READ of a segment.
//
// A table is an array of segment pairs. A pair, with three SBuckets:
//
//     0           128        192                               576         704
//     +-----------+----------+----------+----------+----------+-----------+
//     | bucket 2p | header   | SBucket  | SBucket  | SBucket  | bucket    |
//     | 4 slots   |          |          |          |          | 2p + 1    |
//     +-----------+----------+----------+----------+----------+-----------+
//     |<------- segment of bucket 2p ------------------------>|
//                 |<------- segment of bucket 2p + 1 -------------------->|
//
//     header:  | indicator | check, even | check, odd | fingerprints, a byte a slot |
//
// The pairs are followed by groups of added SBuckets. A group has a line with its check, and as
// many SBuckets as a pair. A table is followed by the next one, of twice the pairs, into which it
// is resized. Memory is never reused, so a client that reads an old table finds that it is sealed.
//
// The slots of a pair are numbered in the order of their addresses, followed by those of its group.
// Slot i is occupied if bit i of the indicator is set. The other bits of an indicator:
//
//     bits 40 to 61   the number of the pair's group plus 1, or 0 if it has none
//     bit 62          sealed: items of the pair have moved, or are about to move, to the next table
//
// A READ may return words of a segment from different times. The check of a segment is a function
// of the indicator and of all occupied slots of the segment. If it matches, the slots are as they
// were when the indicator was read. A group is read after its pair's segment, and its check is a
// function of its slots and of both segments' checks. If it matches, the segment, when the group
// was read, still had the contents that its own READ returned. (The indicator alone does not prove
// that: three updates may swap two items and restore the indicator.) Memory of zeros is an empty
// table.
#pragma once

#include <emmintrin.h>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"
#include "systems/bucket_hash/slot.h"

namespace perdura::systems::continuity {

using bucket_hash::KeyWords;
using bucket_hash::kMaxKeySize;
using bucket_hash::kSlotSize;
using bucket_hash::Slot;
using bucket_hash::slot_of;
using bucket_hash::SlotWords;

inline constexpr std::uint32_t kBucketSlots = 4;
inline constexpr Bytes kBucketSize = kBucketSlots * kSlotSize;
inline constexpr Bytes kHeaderSize = kCacheLine;
inline constexpr std::uint32_t kMaxSBuckets = 4;
inline constexpr std::uint32_t kMaxResizes = 32;

// Offsets of the words of a header.
inline constexpr Bytes kIndicatorOffset = 0;
constexpr Bytes check_offset(bool odd) { return odd ? 2 * kWord : kWord; }
inline constexpr Bytes kFingerprintsOffset = 3 * kWord;
inline constexpr std::uint32_t kFingerprintWords = 5;
inline constexpr std::uint32_t kHeaderWords = kHeaderSize / kWord;
using Header = std::array<std::uint64_t, kHeaderWords>;

// --- indicators ----------------------------------------------------------------------------------

using Indicator = std::uint64_t;
using SlotNumber = std::uint32_t;  // within its pair

inline constexpr int kGroupShift = 40;
inline constexpr std::uint64_t kMaxGroups = (std::uint64_t{1} << 22) - 1;
inline constexpr Indicator kSealed = Indicator{1} << 62;

constexpr Indicator bit_of(SlotNumber slot) { return Indicator{1} << slot; }
constexpr Indicator with_group(Indicator indicator, std::uint64_t group) {
  return indicator | (group + 1) << kGroupShift;
}
constexpr std::optional<std::uint64_t> group_of(Indicator indicator) {
  const std::uint64_t number = (indicator & ~kSealed) >> kGroupShift;
  if (number == 0) return std::nullopt;
  return number - 1;
}

// --- checks --------------------------------------------------------------------------------------

// A check is the XOR of the indicator's term and the terms of all occupied slots.
constexpr std::uint64_t check_term(Indicator indicator) { return indicator * 0x9E3779B97F4A7C15; }
inline std::uint64_t check_term(SlotNumber number, const Slot& slot) {
  return hash64(slot.bytes(), number + 1);
}
// The term of a pair's two segment checks in the check of its group. It is not their XOR, in which
// the slots that both segments share would cancel out.
constexpr std::uint64_t check_term(std::array<std::uint64_t, 2> segment_checks) {
  return segment_checks[0] * 0x9E3779B97F4A7C15 ^ segment_checks[1] * 0xC2B2AE3D27D4EB4F;
}

// --- addresses -----------------------------------------------------------------------------------

// The hash of a key, which determines its home bucket in every table.
inline std::uint64_t hash_of(const Slot& key) {
  const kv::Key bytes = key.key_bytes();
  if (bytes.size() == kMaxKeySize) [[likely]] {
    return hash64(std::span(key.key));  // the same, with a length known at compile time
  }
  return hash64(bytes);
}

// 8 bits of the hash of the key in an occupied slot. They let the server find a key without looking
// at all slots. The fingerprint of slot i is byte i of the words.
using Fingerprint = std::uint8_t;
using FingerprintWords = std::array<std::uint64_t, kFingerprintWords>;
constexpr Fingerprint fingerprint_of(std::uint64_t hash) {
  return static_cast<Fingerprint>(hash >> 56);
}
constexpr std::uint64_t with_fingerprint(std::uint64_t word, SlotNumber slot, Fingerprint value) {
  const std::uint32_t shift = slot % kWord * 8;
  return (word & ~(std::uint64_t{0xFF} << shift)) | std::uint64_t{value} << shift;
}
// The bits of the slots that may have this fingerprint. No slot that has it is missing; a slot with
// another fingerprint is seldom among them, and only above one that has it. Only bits of occupied
// slots are meaningful.
inline Indicator with_this_fingerprint(const Header& header, Fingerprint value) {
  // In each 8-byte half of the vector this finds the lowest zero byte exactly; the borrow from it
  // may falsely report bytes above.
  const __m128i ones = _mm_set1_epi8(1);
  const __m128i wanted = _mm_set1_epi64x(static_cast<std::int64_t>(value * 0x0101010101010101U));
  const auto bits_of = [&](__m128i two_words) {
    const __m128i zero_if_equal = _mm_xor_si128(two_words, wanted);
    const __m128i top_bits = _mm_andnot_si128(zero_if_equal, _mm_sub_epi64(zero_if_equal, ones));
    return static_cast<Indicator>(static_cast<std::uint32_t>(_mm_movemask_epi8(top_bits)));
  };
  const auto word = [&](std::size_t i) {
    return static_cast<std::int64_t>(header[kFingerprintsOffset / kWord + i]);
  };
  static_assert(kFingerprintWords == 5);
  return bits_of(_mm_set_epi64x(word(1), word(0))) |
         bits_of(_mm_set_epi64x(word(3), word(2))) << 16 |
         bits_of(_mm_cvtsi64_si128(word(4))) << 32;
}

// The remainder of hashes by a fixed divisor, computed by two multiplications instead of a
// division.
class Divisor {
 public:
  constexpr Divisor() = default;
  // `number` must not be 0.
  constexpr explicit Divisor(std::uint64_t number) : number_(number), reciprocal_(~0ULL / number) {}
  constexpr std::uint64_t rest_of(std::uint64_t hash) const {
    __extension__ using Wide = unsigned __int128;
    // The estimate is at most 1 less than the quotient, since reciprocal * number > 2^64 - 1 -
    // number.
    const auto quotient = static_cast<std::uint64_t>(Wide{hash} * reciprocal_ >> 64);
    const std::uint64_t rest = hash - quotient * number_;
    return rest < number_ ? rest : rest - number_;
  }

 private:
  std::uint64_t number_ = 1;
  std::uint64_t reciprocal_ = ~0ULL;
};

// The home bucket of a key: its segment pair, and which of the pair's two buckets it is.
struct Home {
  std::uint64_t pair = 0;
  bool odd = false;
};

// One table; offsets are in bytes from the start of the index.
struct Table {
  Bytes offset = 0;
  std::uint64_t pairs = 0;
  std::uint64_t groups = 0;
  std::uint32_t sbuckets = 0;
  // Derived from the fields above.
  Divisor buckets{};
  std::array<Indicator, 2> home_bits{};  // slots for items whose bucket is even, odd

  // Equation (1) of the paper.
  Home home(std::uint64_t hash) const {
    const std::uint64_t bucket = buckets.rest_of(hash);
    return {bucket / 2, bucket % 2 == 1};
  }
  Home home(const Slot& key) const { return home(hash_of(key)); }

  std::uint32_t shared_slots() const { return sbuckets * kBucketSlots; }
  // The number of slots of a pair without its group, whose slots follow.
  SlotNumber own_slots() const { return 2 * kBucketSlots + shared_slots(); }
  SlotNumber all_slots() const { return own_slots() + shared_slots(); }
  // The slots of a segment are `first_slot()` to `first_slot() + segment_slots() - 1`.
  static SlotNumber first_slot(bool odd) { return odd ? kBucketSlots : 0; }
  std::uint32_t segment_slots() const { return kBucketSlots + shared_slots(); }
  Indicator segment_bits(bool odd) const {
    return (bit_of(segment_slots()) - 1) << first_slot(odd);
  }
  Indicator group_bits() const { return (bit_of(shared_slots()) - 1) << own_slots(); }
  Indicator all_bits() const { return bit_of(all_slots()) - 1; }

  // A free slot for an item of this home: in its bucket if possible, else in the SBuckets, else in
  // the pair's group.
  std::optional<SlotNumber> free_slot(bool odd, Indicator indicator) const {
    const Indicator in_bucket = (bit_of(kBucketSlots) - 1)
                                << (odd ? own_slots() - kBucketSlots : 0);
    const Indicator in_group = group_of(indicator) ? group_bits() : 0;
    const Indicator free = ~indicator & (segment_bits(odd) | in_group);
    if (free == 0) return std::nullopt;
    // The slots of a group have higher numbers than those of the SBuckets.
    const Indicator best = (free & in_bucket) != 0 ? free & in_bucket : free;
    return static_cast<SlotNumber>(std::countr_zero(best));
  }

  Bytes segment_size() const { return kBucketSize + kHeaderSize + sbuckets * kBucketSize; }
  Bytes pair_size() const { return segment_size() + kBucketSize; }
  Bytes pair_offset(std::uint64_t pair) const { return offset + pair * pair_size(); }
  // Equations (2) and (3) of the paper.
  Bytes segment_offset(Home home) const {
    return pair_offset(home.pair) + (home.odd ? kBucketSize : 0);
  }
  Bytes header_offset(std::uint64_t pair) const { return pair_offset(pair) + kBucketSize; }
  // The offset of a slot from the start of its segment.
  static Bytes offset_in_segment(bool odd, SlotNumber slot) {
    if (odd) return kHeaderSize + (slot - kBucketSlots) * kSlotSize;
    return slot * kSlotSize + (slot < kBucketSlots ? 0 : kHeaderSize);
  }
  static Bytes header_in_segment(bool odd) { return odd ? 0 : kBucketSize; }

  Bytes group_size() const { return kHeaderSize + sbuckets * kBucketSize; }
  Bytes group_offset(std::uint64_t group) const {
    return pair_offset(pairs) + group * group_size();
  }
  Bytes offset_in_group(SlotNumber slot) const {
    return kHeaderSize + (slot - own_slots()) * kSlotSize;
  }
  // `indicator` is that of the pair; it names the group.
  Bytes slot_offset(std::uint64_t pair, SlotNumber slot, Indicator indicator) const {
    if (slot < own_slots()) [[likely]]
      return pair_offset(pair) + offset_in_segment(false, slot);
    return group_offset(*group_of(indicator)) + offset_in_group(slot);
  }

  Bytes size() const { return pairs * pair_size() + groups * group_size(); }
};

// All tables that an index may ever have. The word at offset 0 says which one is in use.
struct Geometry {
  std::uint64_t pairs = 1;           // number of pairs of the first table
  std::uint32_t sbuckets = 3;        // SBuckets of each pair, 1 to 4
  std::uint32_t added_percent = 10;  // percentage of pairs that can have a group
  std::uint32_t resizes = 1;         // maximum number of resizes
  // SBuckets of each pair of the tables after the first, or 0 for as many as the first table has.
  // Must not be fewer, so that a resize finds room for all items.
  std::uint32_t resized_sbuckets = 0;

  // The level of a table is the number of resizes that led to it.
  Table table(std::uint32_t level) const;
  Bytes size() const;
  // The size of the longest segment of any table.
  Bytes longest_segment() const { return table(resizes).segment_size(); }

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

inline constexpr Bytes kStateOffset = 0;
inline constexpr Bytes kTablesOffset = kMediaLine;

// The table in use, and whether its items are being moved to the next one.
struct State {
  std::uint32_t level = 0;
  bool resizing = false;

  std::uint64_t word() const { return std::uint64_t{level} << 1 | (resizing ? 1 : 0); }
  static State from(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 1), (word & 1) != 0};
  }
};

// --- a client's search ---------------------------------------------------------------------------

struct Search {
  bool torn = false;            // the READ must be repeated
  std::optional<Slot> found{};  // only if not torn
  Indicator indicator = 0;      // the segment's indicator
  std::array<std::uint64_t, 2> segment_checks{};
};
// True if an item that is not found may be in the next table.
inline bool is_sealed(const Search& search) { return (search.indicator & kSealed) != 0; }

// Both search the bytes that a READ returned: those of a segment, and then, if the key was not
// there, those of the group of its pair.
Search search_segment(std::span<const std::byte> segment, const Table& table, bool odd,
                      const Slot& key);
Search search_group(std::span<const std::byte> group, const Table& table, const Search& in_segment,
                    const Slot& key);

}  // namespace perdura::systems::continuity
