// The persistent pool of a partition of a hash index: a header that identifies the pool, followed
// by the index, which is initially zero.
//
//      0                                        256
//      +----------------------------------------+-----------------
//      | magic | version, crc | system | shape  | the index
//      +----------------------------------------+-----------------
//
// The checksum covers the header's fields that follow it. A new pool's magic is written last, so a
// magic of 0 means that the pool's creation was interrupted.
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
  std::uint64_t key_size = 0;    // size of the typical record's key
  std::uint64_t value_size = 0;  // size of the typical record's value
  std::uint64_t records = 0;
  std::array<std::uint64_t, 4> geometry{};  // the index's parameters
  friend bool operator==(const PoolShape&, const PoolShape&) = default;
};

inline constexpr Bytes kIndexOffset = 256;

struct Pool {
  std::unique_ptr<pmem::Region> region;
  bool created = false;  // this call created it; otherwise the index must be recovered
};

// Opens the pool `name` of a node, or creates it with room for an index of `index_size` bytes.
// Throws UsageError if the pool is damaged, belongs to another system or was created for another
// shape.
Pool open_pool(Node& node, const std::string& name, std::string_view system, const PoolShape& shape,
               Bytes index_size);

}  // namespace perdura::systems::bucket_hash
