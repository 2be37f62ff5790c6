// The layout of hstore's hash table in persistent memory (MCAS, section 3.2.2).
//
// The table consists of segments. Segment 0 has a number of entries that is a power of two; each
// further segment has as many as all before it, so it doubles the table. The entries of all
// segments are numbered consecutively, segment after segment:
//
//                    64-bit hash of the key
//      63                                                      0
//      +--------------------------+-------------+--------------+
//      | left hand mask: ignored  |  1          |  offset      |   the number of the home entry
//      +--------------------------+-------------+--------------+
//                                   its highest bit tells the segment, unless it lies in segment 0
//
// An entry is one line:
//
//      0        8        16                32                48                64
//      +--------+--------+-----------------+-----------------+-----------------+
//      | hops   | state  | key             | value 0         | value 1         |
//      +--------+--------+-----------------+-----------------+-----------------+
//
//   hops      bit d: the entry d entries further on holds an item whose home is this entry. An item
//             exists only if such a bit refers to it.
//   state     the state of the item in this entry:
//
//      63                    24  23   22      17 16      12 11       7 6       2   1      0
//      +------------------------+----+----------+----------+----------+----------+------+------+
//      | hash, 40 low bits      | 0  | distance | length 1 | length 0 | key      | which| used |
//      +------------------------+----+----------+----------+----------+----------+------+------+
//
//             distance    of this entry from the item's home
//             key, length 0, length 1   the length of a field's bytes if they are in the field, or
//                         31 if the field has their range
//             which       the index of the item's current value
//             used        1 if the entry holds an item; without hops it does not exist
//   key, ...  up to 16 bytes, or the range of more in the pool's heap: offset and length
//
// There are two values so that an update never overwrites the value that it replaces: the new value
// is written to the other field, and the store of the state selects it. Both are in one line, whose
// stores become durable in order, so one flush is enough.
//
// The table's root lists its segments. The number of segments is stored last when one is added.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "platform/base/units.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::hstore {

inline constexpr std::uint32_t kHops = 63;  // H: entries in which an item may be
inline constexpr std::uint32_t kMostSegments = 32;
inline constexpr Bytes kLongestInField = 16;

using EntryNumber = std::uint64_t;

// A key or a value as an entry holds it: its bytes, or their range.
struct Field {
  std::array<std::uint64_t, 2> words{};

  static Field at(ByteRange range) { return {{range.offset, range.length}}; }
  ByteRange range() const { return {words[0], words[1]}; }
};
static_assert(sizeof(Field) == kLongestInField);

struct HstoreEntry {
  std::uint64_t hops = 0;
  std::uint64_t state = 0;
  Field key;
  std::array<Field, 2> values;
};
static_assert(offsetof(HstoreEntry, state) == 8);
static_assert(offsetof(HstoreEntry, key) == 16);
static_assert(offsetof(HstoreEntry, values) == 32);
static_assert(sizeof(HstoreEntry) == kCacheLine);

// The state of an entry. 0: it holds no item.
class State {
 public:
  static constexpr std::uint32_t kElsewhere = 31;  // the length of a field that has a range
  static constexpr std::uint32_t kHashBits = 40;

  constexpr explicit State(std::uint64_t word) : word_(word) {}
  // The state of a new item, whose value is value 0. Lengths are those of fields.
  static constexpr State created(std::uint64_t hash, std::uint32_t distance, std::uint32_t key,
                                 std::uint32_t value) {
    return State(hash << kHash | std::uint64_t{distance} << kDistance |
                 std::uint64_t{value} << kValue | std::uint64_t{key} << kKey | kUsed);
  }

  constexpr std::uint64_t word() const { return word_; }
  constexpr bool used() const { return (word_ & kUsed) != 0; }
  constexpr std::uint64_t hash() const { return word_ >> kHash; }
  constexpr std::uint32_t distance() const { return bits(kDistance, 6); }
  constexpr std::uint32_t key_length() const { return bits(kKey, 5); }
  constexpr std::uint32_t which() const { return bits(kWhich, 1); }
  constexpr std::uint32_t value_length() const { return bits(kValue + 5 * which(), 5); }

  // The state after an update: the other value is current, and its field has this length.
  constexpr State updated(std::uint32_t value) const {
    const std::uint32_t at = kValue + 5 * (1 - which());
    return State(((word_ & ~(std::uint64_t{31} << at)) | std::uint64_t{value} << at) ^
                 std::uint64_t{1} << kWhich);
  }
  constexpr State moved(std::uint32_t distance) const {
    return State((word_ & ~(std::uint64_t{63} << kDistance)) | std::uint64_t{distance}
                                                                   << kDistance);
  }

 private:
  static constexpr std::uint64_t kUsed = 1;
  static constexpr std::uint32_t kWhich = 1;
  static constexpr std::uint32_t kKey = 2;
  static constexpr std::uint32_t kValue = 7;  // the length of value 0; that of value 1 follows
  static constexpr std::uint32_t kDistance = 17;
  static constexpr std::uint32_t kHash = 24;

  constexpr std::uint32_t bits(std::uint32_t first, std::uint32_t count) const {
    return static_cast<std::uint32_t>(word_ >> first & ((std::uint64_t{1} << count) - 1));
  }
  std::uint64_t word_;
};

struct TableRoot {
  std::uint64_t segments = 0;  // the number of segments
  std::array<std::uint64_t, 7> unused{};
  std::array<std::uint64_t, kMostSegments> offsets{};  // the segments' offsets
};
static_assert(offsetof(TableRoot, offsets) == kCacheLine);
static_assert(sizeof(TableRoot) == 320);

// The numbers of entries of segments. `first_segment` is a power of two.
struct TableShape {
  std::uint64_t first_segment = 128;  // entries
  std::uint32_t hops = kHops;         // H, at most kHops

  std::uint64_t entries_of(std::uint32_t segment) const {
    return segment == 0 ? first_segment : first_segment << (segment - 1);
  }
  std::uint64_t entries(std::uint32_t segments) const { return first_segment << (segments - 1); }
};

}  // namespace perdura::systems::mcas::hstore
