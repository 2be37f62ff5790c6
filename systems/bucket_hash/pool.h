// The persistent pool of a partition of the hash indexes: a header that says what the pool is, and
// the index, which begins as zeros.
//
//      0                                        256
//      +----------------------------------------+-----------------
//      | magic | version, crc | system | shape  | the index
//      +----------------------------------------+-----------------
//
// The checksum covers what follows it. The magic is written last when a pool is created, so a pool
// without one is one whose creation was interrupted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "platform/platform.h"

namespace perdura::systems::bucket_hash {

struct PoolShape {
  std::uint64_t key_size = 0;    // of the typical record
  std::uint64_t value_size = 0;  // of the typical record
  std::uint64_t records = 0;
  std::array<std::uint64_t, 4> geometry{};  // the index's own
  friend bool operator==(const PoolShape&, const PoolShape&) = default;
};

inline constexpr Bytes kIndexOffset = 256;

struct Pool {
  std::unique_ptr<pmem::Region> region;
  bool created = false;  // just now
};

// Opens the pool `name` of a node, or creates it with room for an index of `index_size` bytes.
// Throws UsageError if it is damaged, belongs to another system or has another shape.
Pool open_pool(Node& node, const std::string& name, std::string_view system, const PoolShape& shape,
               Bytes index_size);

}  // namespace perdura::systems::bucket_hash
