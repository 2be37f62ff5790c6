// The layout of a continuity hash table ("Consistent RDMA-Friendly Hashing on Remote Persistent
// Memory", section II), and what a client needs to find a key in it by one READ of a segment.
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
// Behind the pairs come the groups: the added SBuckets, each group a line with its check and as
// many SBuckets as a pair has. Behind a table comes the next one, of twice the pairs, into which it
// is resized: no memory is used twice, so who reads an old table finds that it is sealed.
//
// Slots of a pair are numbered in the order of addresses, then those of its group; slot i is
// occupied if bit i of the indicator is set. An indicator has besides
//
//     bits 40 to 61   the number of the pair's group and 1, or 0
//     bit 62          sealed: items of the pair have moved, or are about to, to the next table
//
// A READ may see the words of a segment at different moments. The check of a segment is a function
// of the indicator and of all occupied slots of the segment: if it matches, the slots are what the
// indicator says they are, as of the moment at which the indicator was read. A group is read after
// its pair's segment, and its check is a function of its slots and of both segments' checks: if it
// matches, the segment holds at that moment what it held when it was read. (The indicator alone
// does not tell: three updates may let two items change places, and leave it as it was.) Memory of
// zeros is an empty table.
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

// Words of a header.
inline constexpr Bytes kIndicatorOffset = 0;
constexpr Bytes check_offset(bool odd) { return odd ? 2 * kWord : kWord; }
inline constexpr Bytes kFingerprintsOffset = 3 * kWord;
inline constexpr std::uint32_t kFingerprintWords = 5;
inline constexpr std::uint32_t kHeaderWords = kHeaderSize / kWord;
using Header = std::array<std::uint64_t, kHeaderWords>;

// --- indicators ----------------------------------------------------------------------------------

using Indicator = std::uint64_t;
using SlotNumber = std::uint32_t;  // in its pair

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

// A check is the sum, without carries, of the term of the indicator and those of occupied slots.
constexpr std::uint64_t check_term(Indicator indicator) { return indicator * 0x9E3779B97F4A7C15; }
inline std::uint64_t check_term(SlotNumber number, const Slot& slot) {
  return hash64(slot.bytes(), number + 1);
}
// Of both segments of a pair, for the check of its group. A sum would lose the slots that they
// share.
constexpr std::uint64_t check_term(std::array<std::uint64_t, 2> segment_checks) {
  return segment_checks[0] * 0x9E3779B97F4A7C15 ^ segment_checks[1] * 0xC2B2AE3D27D4EB4F;
}

// --- places --------------------------------------------------------------------------------------

// A key's, from which its bucket in every table follows.
inline std::uint64_t hash_of(const Slot& key) {
  const Key bytes = key.key_bytes();
  if (bytes.size() == kMaxKeySize) [[likely]] {
    return hash64(std::span(key.key));  // the same, of a length that is known here
  }
  return hash64(bytes);
}

// Of the item in an occupied slot, 8 bits of its key's hash; for the server, which so finds a key
// without looking at all slots. A slot's is byte number `slot` of the words.
using Fingerprint = std::uint8_t;
using FingerprintWords = std::array<std::uint64_t, kFingerprintWords>;
constexpr Fingerprint fingerprint_of(std::uint64_t hash) {
  return static_cast<Fingerprint>(hash >> 56);
}
constexpr std::uint64_t with_fingerprint(std::uint64_t word, SlotNumber slot, Fingerprint value) {
  const std::uint32_t shift = slot % kWord * 8;
  return (word & ~(std::uint64_t{0xFF} << shift)) | std::uint64_t{value} << shift;
}
// The bits of slots that may have this fingerprint: all that have it, seldom another one, behind
// one that has it. For occupied slots only; other bits are anything.
inline Indicator with_this_fingerprint(const Header& header, Fingerprint value) {
  // In every 8 bytes of a vector the lowest zero byte is found exactly, by the borrow from its top
  // bit.
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

// What is left of a hash by division by a number that many hashes are divided by: two
// multiplications in its place.
class Divisor {
 public:
  constexpr Divisor() = default;
  // Not 0.
  constexpr explicit Divisor(std::uint64_t number) : number_(number), reciprocal_(~0ULL / number) {}
  constexpr std::uint64_t rest_of(std::uint64_t hash) const {
    __extension__ using Wide = unsigned __int128;
    // At most 1 less than the quotient, because reciprocal * number is more than 2^64 - 1 - number.
    const auto quotient = static_cast<std::uint64_t>(Wide{hash} * reciprocal_ >> 64);
    const std::uint64_t rest = hash - quotient * number_;
    return rest < number_ ? rest : rest - number_;
  }

 private:
  std::uint64_t number_ = 1;
  std::uint64_t reciprocal_ = ~0ULL;
};

// A bucket with its pair.
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
  // What follows from these.
  Divisor buckets{};
  std::array<Indicator, 2> home_bits{};  // slots that an item can be in whose bucket is even, odd

  // Equation (1).
  Home home(std::uint64_t hash) const {
    const std::uint64_t bucket = buckets.rest_of(hash);
    return {bucket / 2, bucket % 2 == 1};
  }
  Home home(const Slot& key) const { return home(hash_of(key)); }

  std::uint32_t shared_slots() const { return sbuckets * kBucketSlots; }
  // Numbers of a pair's slots without those of its group, which follow.
  SlotNumber own_slots() const { return 2 * kBucketSlots + shared_slots(); }
  SlotNumber all_slots() const { return own_slots() + shared_slots(); }
  // The slots of a segment are `first` to `first + segment_slots() - 1`.
  static SlotNumber first_slot(bool odd) { return odd ? kBucketSlots : 0; }
  std::uint32_t segment_slots() const { return kBucketSlots + shared_slots(); }
  Indicator segment_bits(bool odd) const {
    return (bit_of(segment_slots()) - 1) << first_slot(odd);
  }
  Indicator group_bits() const { return (bit_of(shared_slots()) - 1) << own_slots(); }
  Indicator all_bits() const { return bit_of(all_slots()) - 1; }

  // A slot of the home's segment or its pair's group that is free: in the bucket if there is one,
  // else in the SBuckets, else in the group.
  std::optional<SlotNumber> free_slot(bool odd, Indicator indicator) const {
    const Indicator in_bucket = (bit_of(kBucketSlots) - 1)
                                << (odd ? own_slots() - kBucketSlots : 0);
    const Indicator in_group = group_of(indicator) ? group_bits() : 0;
    const Indicator free = ~indicator & (segment_bits(odd) | in_group);
    if (free == 0) return std::nullopt;
    // Slots of a group have higher numbers than SBuckets.
    const Indicator best = (free & in_bucket) != 0 ? free & in_bucket : free;
    return static_cast<SlotNumber>(std::countr_zero(best));
  }

  Bytes segment_size() const { return kBucketSize + kHeaderSize + sbuckets * kBucketSize; }
  Bytes pair_size() const { return segment_size() + kBucketSize; }
  Bytes pair_offset(std::uint64_t pair) const { return offset + pair * pair_size(); }
  // Equations (2) and (3).
  Bytes segment_offset(Home home) const {
    return pair_offset(home.pair) + (home.odd ? kBucketSize : 0);
  }
  Bytes header_offset(std::uint64_t pair) const { return pair_offset(pair) + kBucketSize; }
  // Of a slot, counted from the start of its segment.
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
  // The indicator says which group is the pair's.
  Bytes slot_offset(std::uint64_t pair, SlotNumber slot, Indicator indicator) const {
    if (slot < own_slots()) [[likely]]
      return pair_offset(pair) + offset_in_segment(false, slot);
    return group_offset(*group_of(indicator)) + offset_in_group(slot);
  }

  Bytes size() const { return pairs * pair_size() + groups * group_size(); }
};

// All tables that an index may come to have. At offset 0 is the word that says which is in use.
struct Geometry {
  std::uint64_t pairs = 1;           // of the first table
  std::uint32_t sbuckets = 3;        // of each pair, 1 to 4
  std::uint32_t added_percent = 10;  // of the pairs may have a group
  std::uint32_t resizes = 1;         // at most
  // Of each pair of the tables after the first one; not fewer than that has, so that its items find
  // room. 0: as many.
  std::uint32_t resized_sbuckets = 0;

  // A table's level is how often it was resized.
  Table table(std::uint32_t level) const;
  Bytes size() const;
  // The longest segment of any table.
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
  bool torn = false;            // read once more
  std::optional<Slot> found{};  // if not torn
  Indicator indicator = 0;      // of a segment
  std::array<std::uint64_t, 2> segment_checks{};
};

// In the bytes of a segment, and of the group of a pair in whose segment nothing was found.
Search search_segment(std::span<const std::byte> segment, const Table& table, bool odd,
                      const Slot& key);
Search search_group(std::span<const std::byte> group, const Table& table, const Search& in_segment,
                    const Slot& key);

}  // namespace perdura::systems::continuity
