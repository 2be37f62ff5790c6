// The layout of a level hash table ("Write-Optimized and High-Performance Hashing Index Scheme for
// Persistent Memory", section 3.1), and the search of a client, which reads one bucket by one READ.
//
// Two levels are in use: the bottom level, and the top level, of twice the buckets. A bucket:
//
//     0                32         64         96         128        160
//     +----------------+----------+----------+----------+----------+
//     | tokens | check | slot 0   | slot 1   | slot 2   | slot 3   |
//     +----------------+----------+----------+----------+----------+
//
// Levels are numbered. Each has twice the buckets of the previous one and follows it in memory,
// which is never reused. If level b is the bottom, level b + 1 is the top. A resize moves the items
// of level b to level b + 2, after which b + 1 is the bottom. A key has two candidate buckets in
// each level, one in each half of the level, by two hash functions:
//
//     first      hash1 * (buckets / 2) / 2^64
//     second     buckets / 2 + hash2 * (buckets / 2) / 2^64
//
// So the items of bucket i of level b can only move to the buckets 4i to 4i + 3 of level b + 2, its
// descendants, which receive items from no other bucket.
//
// The tokens of a bucket are one word, with 16 bits for each slot, and are changed by one store:
//
//     bit 15          the token: the slot is occupied
//     bits 0 to 13    if it is, the tag of the item's key: 14 bits of the first hash
//     bit 14          in the field of slot 0: the bucket is sealed, that is, items of it have
//                     moved, or are about to move, to the next level but one
//
// A READ may return words of a bucket from different times. The check is a function of the tokens
// and of all occupied slots. If it matches, the slots are as they were when the tokens were read.
// Memory of zeros is an empty table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "platform/base/units.h"
#include "systems/bucket_hash/slot.h"

namespace perdura::systems::level {

using bucket_hash::KeyWords;
using bucket_hash::kSlotSize;
using bucket_hash::Slot;
using bucket_hash::slot_of;
using bucket_hash::SlotWords;

inline constexpr std::uint32_t kBucketSlots = 4;
inline constexpr Bytes kHeaderSize = 32;
inline constexpr Bytes kBucketSize = kHeaderSize + kBucketSlots * kSlotSize;
inline constexpr std::uint32_t kMaxResizes = 30;

// Offsets within a bucket.
inline constexpr Bytes kTokensOffset = 0;
inline constexpr Bytes kCheckOffset = kWord;
using SlotNumber = std::uint32_t;
constexpr Bytes slot_offset(SlotNumber slot) { return kHeaderSize + slot * kSlotSize; }

// --- tokens --------------------------------------------------------------------------------------

using Tokens = std::uint64_t;
using Tag = std::uint64_t;

inline constexpr int kTokenWidth = 16;
inline constexpr Tokens kTokenBits = 0x8000'8000'8000'8000;
inline constexpr Tokens kTagBits = 0x3FFF;
inline constexpr Tokens kSealed = 0x4000;

// A mask of the token and the tag of a slot.
constexpr Tokens field_of(SlotNumber slot) {
  return Tokens{0x8000 | kTagBits} << (kTokenWidth * slot);
}
constexpr bool is_occupied(Tokens tokens, SlotNumber slot) {
  return (tokens & kTokenBits & field_of(slot)) != 0;
}
constexpr Tokens without_item(Tokens tokens, SlotNumber slot) { return tokens & ~field_of(slot); }
constexpr Tokens with_item(Tokens tokens, SlotNumber slot, Tag tag) {
  return without_item(tokens, slot) | (Tokens{0x8000} | tag) << (kTokenWidth * slot);
}
constexpr std::uint64_t count_items(Tokens tokens) {
  return ((tokens & kTokenBits) >> 15) * 0x0001'0001'0001'0001 >> 48;
}
constexpr std::optional<SlotNumber> free_slot(Tokens tokens) {
  const Tokens free = ~tokens & kTokenBits;
  if (free == 0) return std::nullopt;
  return static_cast<SlotNumber>(std::countr_zero(free) / kTokenWidth);
}
// The token bits of the slots whose item has this tag.
constexpr Tokens matching(Tokens tokens, Tag tag) {
  constexpr Tokens kEverySlot = 0x0001'0001'0001'0001;
  const Tokens difference = (tokens & ~kSealed) ^ (Tokens{0x8000} | tag) * kEverySlot;
  // A field differs if its top bit is set, or if adding 0x7FFF to its other bits carries into the
  // top bit.
  return ~(((difference & ~kTokenBits) + ~kTokenBits) | difference) & kTokenBits;
}

// --- hashes --------------------------------------------------------------------------------------

__extension__ using Wide = unsigned __int128;
// The two halves of a 128-bit product, combined by XOR.
constexpr std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Odd constants: fractional parts of the golden ratio and of square roots.
inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
inline constexpr std::uint64_t kRoot2 = 0x6A09E667F3BCC909;
inline constexpr std::uint64_t kRoot3 = 0xBB67AE8584CAA73B;
inline constexpr std::uint64_t kRoot5 = 0x3C6EF372FE94F82B;
inline constexpr std::uint64_t kRoot7 = 0xA54FF53A5F1D36F1;

struct Hashes {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  static Hashes of(const KeyWords& key) {
    charge(Work::hash, bucket_hash::kMaxKeySize);
    charge(Work::hash, bucket_hash::kMaxKeySize);
    const std::uint64_t mixed = fold(key.low ^ kRoot2, kGolden) ^ key.high ^ key.length * kRoot7;
    return {fold(fold(mixed, kRoot3) ^ kRoot2, kGolden),
            fold(fold(mixed, kRoot5) ^ kRoot7, kRoot3)};
  }
  static Hashes of(const Slot& key) { return of(KeyWords::of(key)); }
  Tag tag() const { return first & kTagBits; }
};

// --- checks --------------------------------------------------------------------------------------

// A check is the XOR of the tokens' term and the terms of all occupied slots.
constexpr std::uint64_t check_term(Tokens tokens) { return tokens * kGolden; }
inline std::uint64_t check_term(SlotNumber number, const SlotWords& slot) {
  charge(Work::hash, kSlotSize);
  const std::uint64_t halves =
      fold(slot[0] ^ kRoot2, slot[1] ^ kRoot3) ^ fold(slot[2] ^ kRoot5, slot[3] ^ kRoot7);
  return fold(halves ^ (number + 1), kGolden);
}
inline std::uint64_t check_term(SlotNumber number, const Slot& slot) {
  return check_term(number, words_of(slot));
}

// --- addresses -----------------------------------------------------------------------------------

enum class Side : std::uint8_t { first, second };

struct Level {
  Bytes offset = 0;           // bytes from the start of the index
  std::uint64_t buckets = 0;  // an even number

  // The number of the key's candidate bucket on this side.
  std::uint64_t candidate(const Hashes& key, Side side) const {
    const std::uint64_t half = buckets / 2;
    return side == Side::first ? scale(key.first, half) : half + scale(key.second, half);
  }
  Side side_of(std::uint64_t bucket) const {
    return bucket < buckets / 2 ? Side::first : Side::second;
  }
  Bytes bucket_offset(std::uint64_t bucket) const { return offset + bucket * kBucketSize; }
  Bytes candidate_offset(const Hashes& key, Side side) const {
    return bucket_offset(candidate(key, side));
  }
  Bytes size() const { return buckets * kBucketSize; }
  Bytes end() const { return offset + size(); }

 private:
  static std::uint64_t scale(std::uint64_t hash, std::uint64_t range) {
    return static_cast<std::uint64_t>(static_cast<Wide>(hash) * range >> 64);
  }
};

// All levels that an index may ever have.
struct Geometry {
  std::uint64_t buckets = 2;  // number of buckets of level 0, the first bottom; even
  std::uint32_t resizes = 1;  // maximum number of resizes
  // Redo logs of updates; threads that change the index use different ones if there are enough.
  std::uint32_t logs = 1;

  std::uint32_t levels() const { return resizes + 2; }
  Bytes levels_offset() const;
  Level level(std::uint32_t number) const;
  Bytes size() const;

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// --- what comes before the levels ----------------------------------------------------------------

// The bottom level, and whether its items are being moved.
struct State {
  std::uint32_t bottom = 0;
  bool resizing = false;

  std::uint64_t word() const { return std::uint64_t{bottom} << 1 | (resizing ? 1 : 0); }
  static State from(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 1), (word & 1) != 0};
  }
};

// An item that is to overwrite a slot of a full bucket. The entries of a log are used in rotation.
struct LogEntry {
  Slot item;
  std::uint64_t offset = 0;  // the slot's offset in bytes from the start of the index
  std::uint64_t mark = 0;    // 1: the overwrite must be completed; 0: there is none, or it is done
};
static_assert(offsetof(LogEntry, offset) == 32 && offsetof(LogEntry, mark) == 40);

inline constexpr Bytes kStateOffset = 0;
// Every log is a line with the number of the next entry to use, followed by one line for each
// entry.
using LogNumber = std::uint32_t;
inline constexpr std::uint64_t kLogEntries = 16;
constexpr Bytes log_position_offset(LogNumber log) {
  return (1 + log * (1 + kLogEntries)) * kCacheLine;
}
constexpr Bytes log_entry_offset(LogNumber log, std::uint64_t entry) {
  return log_position_offset(log) + (1 + entry) * kCacheLine;
}
inline Bytes Geometry::levels_offset() const {
  return round_up(log_position_offset(logs), kMediaLine);
}

// --- a client's search ---------------------------------------------------------------------------

struct Search {
  bool torn = false;            // the READ must be repeated
  std::optional<Slot> found{};  // only if not torn
  bool sealed = false;          // an item that is not here may be in the next level but one
};
Search search_bucket(std::span<const std::byte> bucket, const Slot& key, Tag tag);

}  // namespace perdura::systems::level
