// The layout of P-FaRM-KV, and the search of a client, which finds a key by one READ of two
// consecutive buckets. It is FaRM's chained associative hopscotch hashing ("FaRM: Fast Remote
// Memory", the section on the hashtable), with the bitmap in each bucket that "Consistent
// RDMA-Friendly Hashing on Remote Persistent Memory" (section III) adds for persistent memory.
//
// A bucket; overflow blocks have the same layout:
//
//     0                                64        96        128       160       192
//     +--------------------------------+---------+---------+---------+---------+
//     | header | check | link | unused | slot    | slot    | slot    | slot    |
//     +--------------------------------+---------+---------+---------+---------+
//
//     header   bits 0 to 3     the bitmap: slot i is occupied if bit i is set
//              bit 4           sealed: items have moved, or are about to move, to the next table
//              bits 5 to 19    the version, incremented by every write of an item
//              bits 20 to 41   the joint version with the previous bucket
//              bits 42 to 63   the joint version with the next bucket
//     link     the number of the next overflow block plus 1, or 0 if there is none
//
// A table is an array of buckets, followed by an array of overflow blocks. An item is in its home
// bucket, in the next bucket, or in the home bucket's chain of overflow blocks. The home bucket and
// the next one are its neighborhood; there is one bucket more than there are homes, so that the
// last home has a contiguous neighborhood, too. A table is followed by the next one, of twice the
// homes, into which it is resized. Memory is never reused, so a client that reads an old table
// finds that it is sealed.
//
// A READ may return words of a bucket from different times. The check is a function of the header,
// the link and all occupied slots: if it matches, they are the bucket's contents when the check was
// read. The two buckets of one READ may still be from different times. Therefore both hold a joint
// version, which counts the items that moved between them: if both copies are equal, no item was
// missed because it moved from one bucket to the other. Memory of zeros is an empty table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"
#include "systems/bucket_hash/slot.h"

namespace perdura::systems::pfarm {

using bucket_hash::kSlotSize;
using bucket_hash::Slot;

inline constexpr std::uint32_t kBucketSlots = 4;
inline constexpr Bytes kHeaderSize = kCacheLine;
inline constexpr Bytes kBucketSize = kHeaderSize + kBucketSlots * kSlotSize;
inline constexpr Bytes kNeighborhoodSize = 2 * kBucketSize;
inline constexpr std::uint32_t kMaxChain = 4;  // maximum number of overflow blocks of a home bucket
inline constexpr std::uint32_t kMaxResizes = 32;

// Offsets of the words of a bucket.
inline constexpr Bytes kHeaderOffset = 0;
inline constexpr Bytes kCheckOffset = kWord;
inline constexpr Bytes kLinkOffset = 2 * kWord;

using SlotNumber = std::uint32_t;  // within its bucket
constexpr Bytes slot_offset(SlotNumber slot) { return kHeaderSize + slot * kSlotSize; }

// --- headers -------------------------------------------------------------------------------------

using Header = std::uint64_t;

constexpr Header bit_of(SlotNumber slot) { return Header{1} << slot; }
inline constexpr Header kOccupied = bit_of(kBucketSlots) - 1;
inline constexpr Header kSealed = bit_of(kBucketSlots);

// A counter in a field of a header, which wraps around to 0.
struct Counter {
  int shift;
  int width;
  constexpr Header mask() const { return ((Header{1} << width) - 1) << shift; }
  constexpr std::uint64_t of(Header header) const { return (header & mask()) >> shift; }
  constexpr Header incremented(Header header) const {
    return (header & ~mask()) | ((header + (Header{1} << shift)) & mask());
  }
};
inline constexpr Counter kVersion{5, 15};
inline constexpr Counter kJointBefore{20, 22};
inline constexpr Counter kJointBehind{42, 22};

std::optional<SlotNumber> free_slot(Header header);

// --- checks --------------------------------------------------------------------------------------

using Link = std::uint64_t;

// A check is the XOR of the term of the header and the link, and the terms of all occupied slots.
constexpr std::uint64_t check_term(Header header, Link link) {
  return header * 0x9E3779B97F4A7C15 + link * 0x6A09E667F3BCC909;
}
std::uint64_t check_term(SlotNumber number, const Slot& slot);

// --- addresses -----------------------------------------------------------------------------------

// The hash of a key, which determines its home bucket in every table.
std::uint64_t hash_of(const Slot& key);

// One table; offsets are in bytes from the start of the index.
struct Table {
  Bytes offset = 0;
  std::uint64_t homes = 0;
  std::uint64_t blocks = 0;

  // Buckets are numbered from 0 to `homes`; the numbers of overflow blocks follow.
  std::uint64_t first_block() const { return homes + 1; }
  std::uint64_t all_buckets() const { return first_block() + blocks; }
  // The number of a key's home bucket. In a table of twice the homes it is twice this number, or
  // one more.
  std::uint64_t home(std::uint64_t hash) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{hash} * homes >> 64);
  }
  std::uint64_t home(const Slot& key) const { return home(hash_of(key)); }
  std::optional<std::uint64_t> block(Link link) const {
    if (link == 0) return std::nullopt;
    return homes + link;
  }

  Bytes bucket_offset(std::uint64_t bucket) const { return offset + bucket * kBucketSize; }
  Bytes size() const { return all_buckets() * kBucketSize; }
  bool has_bucket_at(Bytes at) const {
    return at >= offset && at - offset < size() && (at - offset) % kBucketSize == 0;
  }
};

inline constexpr Bytes kStateOffset = 0;
inline constexpr Bytes kLogSize = 2 * kCacheLine;
// Every pool has logs for this number of workers, however many are started, so that it can recover
// what any number of workers left.
inline constexpr std::uint32_t kMaxWorkers = 64;

// All tables that an index may ever have. They are preceded by the word that selects the table in
// use, at offset 0, and by the logs.
struct Geometry {
  std::uint64_t homes = 1;             // number of home buckets of the first table
  std::uint32_t overflow_percent = 5;  // overflow blocks for a hundred homes
  std::uint32_t resizes = 1;           // maximum number of resizes
  std::uint32_t logs = 1;              // one for each possible worker

  Bytes log_offset(std::uint32_t worker) const { return kCacheLine + worker * kLogSize; }
  Bytes tables_offset() const { return round_up(log_offset(logs), kMediaLine); }
  // The level of a table is the number of resizes that led to it.
  Table table(std::uint32_t level) const;
  Bytes size() const;

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

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
  bool sealed = false;          // an item that is not found may be in the next table
  Link link = 0;                // the link in the home bucket, or in the block
};
inline bool is_sealed(const Search& search) { return search.sealed; }

// Both search the bytes that a READ returned: those of the home bucket and the next one, or those
// of an overflow block.
Search search_neighborhood(std::span<const std::byte> buckets, const Slot& key);
Search search_block(std::span<const std::byte> block, const Slot& key);

}  // namespace perdura::systems::pfarm
