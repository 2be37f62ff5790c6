// The layout of Erda's persistent memory (Liu et al., sections 3.2 and 4.1).
//
// A partition's pool:
//
//   0           superblock: the shape of the pool, protected by a CRC
//   4096        head array: the state of each head and its two chains of log regions
//   table       hopscotch table; an entry holds a key, a head ID and the version word
//   regions     log regions, which are divided into segments; no object spans two segments
//
// The version word (section 3.2.3), updated by one 8-byte atomic store:
//
//   63        62 ............ 32   31 ............. 1   0
//   +---------+-----------------+--------------------+------+
//   | new tag | first offset    | second offset      | copy |
//   +---------+-----------------+--------------------+------+
//
// If the new tag is 1, the first offset is that of the newest version and the second that of the
// previous one; if it is 0, the other way around. An offset counts 8-byte units along the head's
// chain of regions; 0 means that there is no such version. While the head's log is being cleaned
// (section 4.4), the previous offset may refer to Region 2; the copy bit says so. The paper
// reserves this bit for future use.
//
// An object (section 3.2.1), at an 8-byte boundary:
//
//   +-------+--------+- - - - - - - - - - - - - - - -+-----+- - - -+
//   | flags | CRC-32 | key length and value length,  | key | value |
//   | 1     | 4      | 4 + 4, if not the typical ones|     |       |
//   +-------+--------+- - - - - - - - - - - - - - - -+-----+- - - -+
//
// The CRC covers all other bytes of the object, and is combined with the life of the region in
// which the object lies, so that remains of an earlier life of the region do not verify. The flags
// are the delete tag (a deleted object has no value) and whether the two lengths follow. Objects of
// the typical sizes carry no lengths, as in the paper.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"
#include "platform/pmem/accounting.h"
#include "services/kv/kv.h"
#include "systems/hopscotch/geometry.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::erda {

// --- version word --------------------------------------------------------------------------------

// A position in a head's log, in 8-byte units along its chain of regions. 0 means none.
struct Position {
  std::uint32_t units = 0;
  explicit operator bool() const { return units != 0; }
  Bytes bytes() const { return Bytes{units} * kWord; }
  friend auto operator<=>(const Position&, const Position&) = default;
};
inline constexpr std::uint32_t kMaxUnits = (1U << 31) - 1;

class VersionWord {
 public:
  constexpr explicit VersionWord(std::uint64_t raw) : raw_(raw) {}
  static constexpr VersionWord of(bool new_tag, Position first, Position second) {
    return VersionWord(std::uint64_t{new_tag} << 63 | std::uint64_t{first.units} << 32 |
                       std::uint64_t{second.units} << 1);
  }
  // The word of a new key, whose only version is at `position`.
  static constexpr VersionWord created(Position position) { return of(true, position, {}); }
  // The same if that version lies in Region 2.
  static constexpr VersionWord created_in_region_2(Position position) {
    return VersionWord(of(true, {}, position).raw_ | kCopyBit);
  }

  constexpr std::uint64_t raw() const { return raw_; }
  constexpr bool new_tag() const { return raw_ >> 63 != 0; }
  constexpr Position newest() const { return new_tag() ? first() : second(); }
  constexpr Position previous() const { return new_tag() ? second() : first(); }

  // Section 4.1: flips the tag and stores the new offset where the tag now points. So the newest
  // version becomes the previous one, although its offset is not rewritten.
  constexpr VersionWord updated(Position position) const {
    return new_tag() ? of(false, first(), position) : of(true, position, second());
  }
  // Section 4.2: replaces the newest offset by the previous one.
  constexpr VersionWord restored() const {
    return new_tag() ? of(true, second(), second()) : of(false, first(), first());
  }

  // Section 4.4: while the log is being cleaned, the tag is not flipped. has_copy() tells whether
  // the previous offset is that of the newest version's copy in Region 2.
  constexpr bool has_copy() const { return (raw_ & kCopyBit) != 0; }
  constexpr Position copy() const { return has_copy() ? previous() : Position{}; }
  constexpr VersionWord with_copy(Position position) const {
    const VersionWord word =
        new_tag() ? of(true, first(), position) : of(false, position, second());
    return VersionWord(word.raw_ | kCopyBit);
  }
  // Replaces the newest version in Region 1. A copy of the version before is dropped, since it is
  // stale.
  constexpr VersionWord replaced(Position position) const {
    return new_tag() ? of(true, position, {}) : of(false, {}, position);
  }
  constexpr VersionWord without_copy() const { return replaced(newest()); }
  // At the end of cleaning: flips the tag, so that the copy becomes the newest version.
  constexpr VersionWord switched() const { return switched_to(copy()); }
  constexpr VersionWord switched_to(Position position) const {
    return new_tag() ? of(false, {}, position) : of(true, position, {});
  }

 private:
  static constexpr std::uint64_t kCopyBit = 1;
  constexpr Position first() const { return {static_cast<std::uint32_t>(raw_ >> 32) & kMaxUnits}; }
  constexpr Position second() const { return {static_cast<std::uint32_t>(raw_ >> 1) & kMaxUnits}; }
  std::uint64_t raw_;
};

// Copy bit, second offset, first offset, new tag: the fields whose changes the paper counts.
inline constexpr pmem::WordLayout kVersionLayout{{1, 31, 31, 1}};

// --- pool ----------------------------------------------------------------------------------------

struct Superblock {
  static constexpr std::uint64_t kMagic = 0x32304144524531ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t key_size = 0;
  std::uint64_t value_size = 0;
  std::uint64_t buckets = 0;
  std::uint64_t neighborhood = 0;
  std::uint64_t heads = 0;
  std::uint64_t regions = 0;  // number of regions that the pool has room for
  std::uint64_t region_bytes = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t crc = 0;  // checksum of all fields above
  std::uint32_t unused = 0;
  std::uint32_t computed_crc() const;
};
static_assert(sizeof(Superblock) == 80);
static_assert(offsetof(Superblock, crc) == 72);

// The activity of a head's cleaner (section 4.4), which recovery needs to know.
enum class Phase : std::uint8_t {
  normal,
  merging,  // the newest versions are being copied from Region 1 to Region 2
  // Later writes to Region 1 are copied, too; clients' versions go to Region 2.
  replicating,
  switching,  // the head points to Region 2; the tags are being flipped
};

// The state of a head in one 8-byte word: which of its two chains the head points to, and the
// phase.
struct HeadState {
  std::uint32_t chain = 0;  // Region 1; the other chain is Region 2
  Phase phase = Phase::normal;

  static constexpr HeadState of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word & 1), static_cast<Phase>(word >> 1 & 3)};
  }
  constexpr std::uint64_t word() const { return chain | static_cast<std::uint64_t>(phase) << 1; }
};

// A link of a chain in one word: a region, and its life, which is different for every use of the
// region (Space assigns it).
struct Link {
  std::uint32_t region = 0;
  std::uint32_t life = 0;

  // A word with 0 in its lower half links no region; its life is the next one, which no region has
  // had there. So a word that has ever linked a region is not 0, unlike in a new pool.
  static constexpr std::optional<Link> of(std::uint64_t word) {
    const auto number = static_cast<std::uint32_t>(word);
    if (number == 0) return std::nullopt;
    return Link{number - 1, life_of(word)};
  }
  static constexpr std::uint32_t life_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 32);
  }
  constexpr std::uint64_t word() const { return std::uint64_t{life} << 32 | (region + 1); }
  constexpr std::uint64_t unlinked() const { return std::uint64_t{life + 1} << 32; }
};

// The offsets within a pool, computed from its superblock. Heads are numbered from 1.
class PoolLayout {
 public:
  explicit PoolLayout(const Superblock& shape);

  const Superblock& shape() const { return shape_; }
  const hopscotch::Geometry& table() const { return table_; }
  Bytes table_offset() const { return table_offset_; }
  Bytes size() const { return size_; }

  // The head array. Each head has four words: its state; the begin and the end, in units, of the
  // part of Region 2 that is reserved for replication; the size of its largest object if that
  // exceeds the typical one's. Two chains follow, each of as many links as the pool has regions.
  static constexpr Bytes kHeadArray = 4 * KiB;
  Bytes head_array_size() const { return shape_.heads * head_size(); }
  Bytes state_word(std::uint8_t head) const { return kHeadArray + (head - 1) * head_size(); }
  Bytes reserved_begin_word(std::uint8_t head) const { return state_word(head) + kWord; }
  Bytes reserved_end_word(std::uint8_t head) const { return state_word(head) + 2 * kWord; }
  Bytes largest_word(std::uint8_t head) const { return state_word(head) + 3 * kWord; }
  Bytes link_word(std::uint8_t head, std::uint32_t chain, std::uint64_t link) const {
    return state_word(head) + (4 + chain * shape_.regions + link) * kWord;
  }
  Bytes region_offset(std::uint64_t region) const {
    return regions_offset_ + region * shape_.region_bytes;
  }

  // The head of a key, which clients can compute before they have read the entry.
  std::uint8_t head_of(const hopscotch::StoredKey& key) const {
    if (shape_.heads == 1) return 1;
    return static_cast<std::uint8_t>(1 + table_.home(key) % shape_.heads);
  }

 private:
  Bytes head_size() const { return (4 + 2 * shape_.regions) * kWord; }

  Superblock shape_;
  hopscotch::Geometry table_;
  Bytes table_offset_;
  Bytes regions_offset_;
  Bytes size_;
};

// The shape of a pool for a configuration. Throws UsageError if the configuration is impossible.
Superblock shape_for(const kv::KvConfig& config);

// `[systems.erda]` (docs/systems/erda.md).
// shape_for() checks further conditions, such as that a number is a multiple of another.
inline constexpr std::array kParameterTable = std::to_array<Parameter>({
    {.name = "region_bytes",
     .type = Count{0, Bytes{kMaxUnits} * kWord},
     .usual = 1 * GiB,
     .unit = "bytes",
     .what = "size of the log's regions (section 3.2.2); a multiple of segment_bytes"},
    {.name = "segment_bytes",
     .type = Count{0, Bytes{kMaxUnits} * kWord},
     .usual = 8 * MiB,
     .unit = "bytes",
     .what = "size of the regions' segments (section 3.2.2); a multiple of 8"},
    {.name = "regions",
     .type = Count{0, std::uint64_t{1} << 29},
     .what = "regions of the pool, more than heads; else as many as the expected writes need"},
    {.name = "heads",
     .type = Count{1, 255},
     .usual = 1,
     .what = "logs that objects are spread over; a head's ID has one byte"},
    {.name = "neighborhood",
     .type = Count{0, hopscotch::kMaxNeighborhood},
     .usual = hopscotch::kDefaultNeighborhood,
     .what = "buckets in which hopscotch hashing looks for a key"},
    {.name = "buckets",
     .type = Count{1, hopscotch::Geometry::kMaxBuckets},
     .what = "home buckets of the hash table; else as many as the records need"},
    {.name = "cleaning_threshold",
     .type = Count{1, 100},
     .usual = 80,
     .unit = "%",
     .what = "share of a head's part of the log that is used when cleaning begins"},
    {.name = "clean_always",
     .type = Flag{},
     .usual = false,
     .what = "cleans one head after the other without a pause"},
    {.name = "client_timeout_ms",
     .type = Count{1, 3'600'000},
     .usual = 1000,
     .unit = "ms",
     .what = "how long the server waits for clients' acknowledgments"},
    {.name = "persist_before_update",
     .type = Flag{},
     .usual = false,
     .what = "the server makes an object durable before its entry points to it"},
});

// Throws ParameterError.
ParameterReader read_parameters(const kv::KvConfig& config);

// --- objects -------------------------------------------------------------------------------------

inline constexpr Bytes kShortHeader = 5;  // flags, CRC
inline constexpr Bytes kLongHeader = 13;  // flags, CRC, and two lengths

// The encoding of objects, for given typical sizes of keys and values.
class ObjectFormat {
 public:
  ObjectFormat(Bytes key_size, Bytes value_size) : key_size_(key_size), value_size_(value_size) {}

  Bytes object_size(Bytes key_length, Bytes value_length, bool deleted) const {
    return header(key_length, value_length, deleted) + key_length + (deleted ? 0 : value_length);
  }
  // The size of the typical object, but at least that of a whole header: what a READ fetches first.
  Bytes typical_size() const {
    return std::max(kShortHeader + key_size_ + value_size_, kLongHeader);
  }

  // Encodes an object at the beginning of `into`, sealed for life 0; returns its size.
  Bytes encode(kv::Key key, std::optional<kv::Value> value, std::span<std::byte> into) const;

  // Changes the checksum of an object that is sealed for one life of a region to that of another.
  static void reseal(std::span<std::byte> object, std::uint32_t from_life, std::uint32_t to_life);

  // The size of the object that begins with these bytes (at least kLongHeader), according to its
  // header. If the object is torn, any number may be returned.
  Bytes size_of(std::span<const std::byte> start) const;

  struct Object {
    bool deleted = false;
    kv::Key key;
    kv::Value value;
  };
  // The object, if the bytes begin with a complete one of this life whose checksum matches.
  std::optional<Object> decode(std::span<const std::byte> bytes, std::uint32_t life) const;

  // The size of an object's header and key, computed from its first kLongHeader bytes; and the key,
  // given as many bytes. Nothing is verified. Returns nullopt if the size exceeds `room`.
  std::optional<Bytes> key_end(std::span<const std::byte> start, Bytes room) const;
  kv::Key key_in(std::span<const std::byte> start) const;

 private:
  bool typical(Bytes key_length, Bytes value_length, bool deleted) const {
    return key_length == key_size_ && (deleted || value_length == value_size_);
  }
  Bytes header(Bytes key_length, Bytes value_length, bool deleted) const {
    return typical(key_length, value_length, deleted) ? kShortHeader : kLongHeader;
  }

  Bytes key_size_;
  Bytes value_size_;
};

}  // namespace perdura::systems::erda
