// The layout of the persistent pool of a partition of the two baselines of the Erda paper (section
// 5.1), Redo Logging and Read After Write.
//
//   0          +-----------------------------------------------------------------+
//              | magic | version, crc | system | shape         |  replay start   |
//   256        +-----------------------------------------------------------------+
//              | hash table: hopscotch entries, the key and an 8-byte address     |
//              +-----------------------------------------------------------------+
//              | log: slots of fixed size, a ring                                 |
//              +-----------------------------------------------------------------+
//              | objects: slots of fixed size, a key and its value, nothing else  |
//              +-----------------------------------------------------------------+
//              | objects with keys longer than the typical one: larger slots      |
//              +-----------------------------------------------------------------+
//
// The header's checksum covers the constant part, from `system` to the end of `shape`. The header
// is written last when a pool is created, so a missing header means that the creation was
// interrupted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "services/kv/kv.h"
#include "systems/hopscotch/geometry.h"

namespace perdura::systems::write_ahead {

// KvSystem::small_stores of both baselines: the log wraps around once or twice within a history,
// and keys share so few home buckets that entries are moved.
constexpr std::array<services::Setting, 3> small_settings(std::uint64_t log_slots) {
  return {services::Setting{"log_slots", log_slots}, services::Setting{"buckets", 5},
          services::Setting{"neighborhood", 3}};
}
inline constexpr std::array kOneLap = small_settings(16);
inline constexpr std::array kTwoLaps = small_settings(12);
inline constexpr kv::SmallStore kOneLapStore{kOneLap, hopscotch::kCrowding};
inline constexpr kv::SmallStore kTwoLapsStore{kTwoLaps, hopscotch::kCrowding};

// The limits of an ObjectAddress.
inline constexpr Bytes kLongestKey = (Bytes{1} << 10) - 1;
inline constexpr Bytes kLongestValue = (Bytes{1} << 21) - 1;

// The `[systems.NAME]` parameters of both baselines.
inline constexpr std::array kParameterTable = std::to_array<Parameter>({
    {.name = "log_slots",
     .type = Count{1, std::uint64_t{1} << 24},
     .what = "records that the log holds; else as many as fit into its usual size"},
    {.name = "max_key_size",
     .type = Count{1, kLongestKey},
     .unit = "bytes",
     .what = "the longest key that is taken"},
    {.name = "long_keys",
     .type = Count{0, (std::uint64_t{1} << 31) - 2},
     .what =
         "keys longer than the typical one that the store holds; else an eighth of the records"},
    {.name = "neighborhood",
     .type = Count{1, hopscotch::kMaxNeighborhood},
     .usual = hopscotch::kDefaultNeighborhood,
     .what = "buckets in which hopscotch hashing looks for a key"},
    {.name = "buckets",
     .type = Count{1, hopscotch::Geometry::kMaxBuckets},
     .what = "home buckets of the hash table; else as many as the records need"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 32,
     .what = "operations of one session under way at once"},
});

struct Parameters {
  std::uint64_t log_slots = 0;     // records that the log holds
  std::uint64_t max_key_size = 0;  // the longest key that is accepted
  // Number of keys longer than the typical one that the store can hold.
  std::uint64_t long_keys = 0;
  std::uint64_t neighborhood = 0;
  std::uint64_t buckets = 0;      // home buckets of the hash table
  std::uint64_t queue_depth = 0;  // maximum number of operations of one session in flight

  // Throws UsageError if the configuration has other parameters, or is impossible.
  static Parameters of(const kv::KvConfig& config, std::string_view system,
                       std::uint64_t least_log_slots);
};

struct Shape {
  std::uint64_t key_size = 0;
  std::uint64_t value_size = 0;
  std::uint64_t max_key_size = 0;
  std::uint64_t max_value_size = 0;
  std::uint64_t records = 0;
  std::uint64_t long_keys = 0;
  std::uint64_t buckets = 0;
  std::uint64_t neighborhood = 0;
  std::uint64_t log_slots = 0;

  Shape() = default;
  Shape(const kv::KvConfig& config, const Parameters& parameters);

  hopscotch::Geometry table() const {
    return {key_size, static_cast<std::uint32_t>(neighborhood), buckets};
  }
  Bytes log_slot_size() const;
  Bytes object_slot_size() const;
  Bytes long_object_slot_size() const;
  std::uint64_t objects() const { return records + long_keys; }  // slots for long keys come last

  Bytes table_offset() const;
  Bytes log_offset() const;
  Bytes objects_offset() const;
  Bytes object_offset(std::uint64_t object) const;
  Bytes pool_size() const { return object_offset(objects()); }

  friend bool operator==(const Shape&, const Shape&) = default;
};
static_assert(sizeof(Shape) == 72);

struct PoolHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t crc = 0;
  std::array<char, 16> system{};
  Shape shape;
};
static_assert(offsetof(PoolHeader, crc) == 12);
static_assert(offsetof(PoolHeader, system) == 16);
static_assert(offsetof(PoolHeader, shape) == 32);
static_assert(sizeof(PoolHeader) == 104);

inline constexpr Bytes kReplayStartOffset = 128;  // a word in a cache line of its own
inline constexpr Bytes kHeaderSize = 256;

// The word of a hash entry: the number of the object slot, and the lengths of key and value. Never
// 0.
//
//   bit 0              32           42               63      64
//       | object + 1   | key length | value length    | 0      |
struct ObjectAddress {
  std::uint32_t object = 0;
  std::uint16_t key_length = 0;
  std::uint32_t value_length = 0;

  std::uint64_t word() const {
    return (std::uint64_t{value_length} << 42) | (std::uint64_t{key_length} << 32) |
           (std::uint64_t{object} + 1);
  }
  static ObjectAddress from(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word) - 1, static_cast<std::uint16_t>((word >> 32) & 0x3FF),
            static_cast<std::uint32_t>(word >> 42)};
  }
};

// A note in the word of an entry whose key was deleted while the log still held records of it: bit
// 63, and the position before which no record of the key may be replayed. So one store both deletes
// the key and leaves the note.
inline constexpr std::uint64_t kDeletedBit = std::uint64_t{1} << 63;

struct Pool {
  std::unique_ptr<pmem::Region> region;
  bool created = false;  // this call created it, and it is empty
};

// Opens the pool `name` of a node, or creates it. Throws UsageError if the pool is damaged, belongs
// to another system or was created for another shape.
Pool open_pool(Node& node, const std::string& name, std::string_view system, const Shape& shape);

}  // namespace perdura::systems::write_ahead
