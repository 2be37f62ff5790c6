// The layout of a hopscotch hash table in persistent memory, and the search of a client, which
// finds a key by one READ. Erda and its two baselines index their objects with it (Erda, section
// 5.1): a key lies in one of H neighboring buckets, so that one contiguous READ fetches every entry
// where it can be.
//
// The table is an array of entries:
//
//      0         8     9        10                     10 + slot         stride
//      +---------+-----+--------+----------------------+-----------------+
//      | word    | tag | format | key slot             | to 8 bytes      |
//      +---------+-----+--------+----------------------+-----------------+
//
//   word    the system's word, changed atomically (an address; Erda's two offsets); 0: the entry is
//           empty
//   tag     used by the system (Erda's head ID), or 0
//   format  what the key slot holds: 0, a key of exactly the typical length; 1 to 254, a key of
//           that many bytes; 255, the 16-byte digest of a key that does not fit
//
// A key's home bucket is computed from the hash of the bytes in its slot, so an entry can be moved
// without further information. Home buckets are the first `buckets` entries; H - 1 more entries
// follow them, so that no neighborhood wraps around.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"
#include "services/kv/kv.h"

namespace perdura::systems::hopscotch {

struct EntryHead {
  std::uint64_t word = 0;
  std::uint8_t tag = 0;
  std::uint8_t format = 0;
};
static_assert(offsetof(EntryHead, word) == 0);
static_assert(offsetof(EntryHead, tag) == 8);
static_assert(offsetof(EntryHead, format) == 9);

inline constexpr Bytes kWordOffset = 0;
inline constexpr Bytes kTagOffset = 8;
inline constexpr Bytes kFormatOffset = 9;
inline constexpr Bytes kKeyOffset = 10;

inline constexpr Bytes kDigestSize = 16;
inline constexpr std::uint8_t kTypicalFormat = 0;
inline constexpr std::uint8_t kDigestFormat = 255;

inline constexpr std::uint32_t kDefaultNeighborhood = 8;
inline constexpr std::uint32_t kMaxNeighborhood = 32;

using Bucket = std::uint64_t;

// For a small store with 5 home buckets and neighborhoods of 3 (KvSystem::small_stores): keys that
// force others to move when keys 0 to 3 of 24 bytes are inserted.
inline constexpr std::array<std::uint64_t, 2> kCrowding{1010, 1011};

// A key as an entry stores it. Refers to the bytes of the key that it was made from.
struct StoredKey {
  std::uint8_t format = kTypicalFormat;
  kv::Key key;
  std::array<std::byte, kDigestSize> digest{};

  std::span<const std::byte> bytes() const {
    return format == kDigestFormat ? std::span<const std::byte>(digest) : key;
  }
};

struct Geometry {
  Bytes key_size = 16;  // size of the typical key
  std::uint32_t neighborhood = kDefaultNeighborhood;
  std::uint64_t buckets = 1;  // number of home buckets

  // A table for `records` keys: at least two home buckets for each record, and enough that fewer
  // than one table in a thousand is expected to have a key without a bucket.
  static Geometry for_records(std::uint64_t records, Bytes key_size,
                              std::uint32_t neighborhood = kDefaultNeighborhood);
  // With other numbers of home buckets, keys may find no room.
  static constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 40;

  Bytes slot_size() const { return key_size < kDigestSize ? kDigestSize : key_size; }
  Bytes stride() const { return round_up(kKeyOffset + slot_size(), kWord); }
  std::uint64_t entries() const { return buckets + neighborhood - 1; }
  Bytes size() const { return entries() * stride(); }
  Bytes offset_of(Bucket bucket) const { return bucket * stride(); }

  StoredKey stored(kv::Key key) const;
  // Number of bytes of the key slot that an entry of this format uses.
  Bytes used(std::uint8_t format) const;
  Bucket home(std::span<const std::byte> stored_bytes) const;
  Bucket home(const StoredKey& key) const { return home(key.bytes()); }

  // The neighborhood of a home bucket, which is a contiguous range. The offset is from the start of
  // the table.
  Bytes neighborhood_offset(Bucket home_bucket) const { return offset_of(home_bucket); }
  Bytes neighborhood_length() const { return neighborhood * stride(); }

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

struct NeighborhoodEntry {
  std::uint64_t word = 0;
  std::uint8_t tag = 0;
  std::uint32_t index = 0;  // within the neighborhood
};

// Searches the bytes of a key's neighborhood. If a READ raced with a change of an entry, they may
// pair an old word with a new key, so the caller must compare the key of the object that the word
// points to.
std::optional<NeighborhoodEntry> find_in(std::span<const std::byte> neighborhood,
                                         const Geometry& geometry, const StoredKey& key,
                                         std::uint64_t vacant_bits = 0);

}  // namespace perdura::systems::hopscotch
