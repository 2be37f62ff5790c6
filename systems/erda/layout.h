// What Erda keeps in persistent memory (Liu et al., sections 3.2 and 4.1).
//
// A partition's pool:
//
//   0           superblock: shape of the pool, checked by a CRC
//   4096        head array: for each head its chain of log regions
//   table       hopscotch table; an entry is key, head ID and the version word
//   regions     log regions, each cut into segments; an object never spans two segments
//
// The version word (section 3.2.3), updated by one 8-byte atomic store:
//
//   63        62 ............ 32   31 ............. 1   0
//   +---------+-----------------+--------------------+----------+
//   | new tag | first offset    | second offset      | reserved |
//   +---------+-----------------+--------------------+----------+
//
// New tag 1: the first offset is the newest version's and the second the previous one's; 0: the
// other way round. An offset counts 8-byte units along the head's chain of regions; 0 means no
// version.
//
// An object (section 3.2.1), at an 8-byte boundary:
//
//   +-------+--------+- - - - - - - - - - - - - - - -+-----+- - - -+
//   | flags | CRC-32 | key length and value length,  | key | value |
//   | 1     | 4      | 4 + 4, if not the typical ones|     |       |
//   +-------+--------+- - - - - - - - - - - - - - - -+-----+- - - -+
//
// The CRC covers everything but itself. Flags: delete tag (such an object has no value), and
// whether the lengths follow. Objects of the typical sizes carry no lengths, as in the paper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "platform/pmem/accounting.h"
#include "platform/units.h"
#include "systems/hopscotch/geometry.h"
#include "systems/kv.h"

namespace perdura::systems::erda {

// --- version word --------------------------------------------------------------------------------

// A place in a head's log, in 8-byte units along its chain of regions. 0: none.
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
  // The word of a key that is created: its only version is at `position`.
  static constexpr VersionWord created(Position position) { return of(true, position, {}); }

  constexpr std::uint64_t raw() const { return raw_; }
  constexpr bool new_tag() const { return raw_ >> 63 != 0; }
  constexpr Position newest() const { return new_tag() ? first() : second(); }
  constexpr Position previous() const { return new_tag() ? second() : first(); }

  // Section 4.1: flip the tag, put the new offset where the tag now points; the newest version
  // becomes the previous one without being written.
  constexpr VersionWord updated(Position position) const {
    return new_tag() ? of(false, first(), position) : of(true, position, second());
  }
  // Section 4.2: replace the newest offset by the previous one.
  constexpr VersionWord restored() const {
    return new_tag() ? of(true, second(), second()) : of(false, first(), first());
  }

 private:
  constexpr Position first() const { return {static_cast<std::uint32_t>(raw_ >> 32) & kMaxUnits}; }
  constexpr Position second() const { return {static_cast<std::uint32_t>(raw_ >> 1) & kMaxUnits}; }
  std::uint64_t raw_;
};

// Reserved bit, second offset, first offset, new tag: the fields that the paper counts.
inline constexpr pmem::WordLayout kVersionLayout{{1, 31, 31, 1}};

// --- pool ----------------------------------------------------------------------------------------

struct Superblock {
  static constexpr std::uint64_t kMagic = 0x31304144524531ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t key_size = 0;
  std::uint64_t value_size = 0;
  std::uint64_t buckets = 0;
  std::uint64_t neighborhood = 0;
  std::uint64_t heads = 0;
  std::uint64_t regions = 0;  // that the pool has room for
  std::uint64_t region_bytes = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t crc = 0;  // of all before
  std::uint32_t unused = 0;
  std::uint32_t computed_crc() const;
};
static_assert(sizeof(Superblock) == 80);
static_assert(offsetof(Superblock, crc) == 72);

// The places in a pool, computed from its superblock.
class PoolLayout {
 public:
  explicit PoolLayout(const Superblock& shape);

  const Superblock& shape() const { return shape_; }
  const hopscotch::Geometry& table() const { return table_; }
  Bytes table_offset() const { return table_offset_; }
  Bytes size() const { return size_; }

  // The head array: for each head (numbered from 1) as many words as the pool has regions; a word
  // is the number of a region plus one, or 0 at the end of the chain.
  static constexpr Bytes kHeadArray = 4 * KiB;
  Bytes head_array_size() const { return shape_.heads * shape_.regions * kWord; }
  Bytes chain_word(std::uint8_t head, std::uint64_t link) const {
    return kHeadArray + ((head - 1) * shape_.regions + link) * kWord;
  }
  Bytes region_offset(std::uint64_t region) const {
    return regions_offset_ + region * shape_.region_bytes;
  }

 private:
  Superblock shape_;
  hopscotch::Geometry table_;
  Bytes table_offset_;
  Bytes regions_offset_;
  Bytes size_;
};

// The shape of a pool for a configuration. Throws UsageError if it cannot be.
Superblock shape_for(const KvConfig& config);

// --- objects -------------------------------------------------------------------------------------

inline constexpr Bytes kShortHeader = 5;  // flags, CRC
inline constexpr Bytes kLongHeader = 13;  // and two lengths

// How long an object is, from the sizes of its key and value.
class ObjectFormat {
 public:
  ObjectFormat(Bytes key_size, Bytes value_size) : key_size_(key_size), value_size_(value_size) {}

  Bytes object_size(Bytes key_length, Bytes value_length, bool deleted) const {
    return header(key_length, value_length, deleted) + key_length + (deleted ? 0 : value_length);
  }
  // Of the typical object, and at least a whole header: what a READ fetches first.
  Bytes typical_size() const {
    return std::max(kShortHeader + key_size_ + value_size_, kLongHeader);
  }

  // Writes an object to the beginning of `into`; returns its size.
  Bytes encode(Key key, std::optional<Value> value, std::span<std::byte> into) const;

  // The size of the object whose first bytes these are (at least kLongHeader), as its header has
  // it; it may be anything if the object is torn.
  Bytes size_of(std::span<const std::byte> start) const;

  struct Object {
    bool deleted = false;
    Key key;
    Value value;
  };
  // The object, if these bytes begin with a whole one whose checksum is right.
  std::optional<Object> decode(std::span<const std::byte> bytes) const;

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
