// The parameters of MCAS, `[systems.mcas]`, and how a shard's memory is laid out for them:
//
//      0          256                    first
//      +----------+----------------------+-----------+-----------+---
//      | header   | region allocator     | granule 0 | granule 1 | ...
//      +----------+----------------------+-----------+-----------+---
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "platform/base/parameter.h"
#include "services/kv/kv.h"
#include "systems/mcas/hstore/hstore.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas {

inline constexpr std::string_view kName = "mcas";

inline constexpr Bytes kLongestKey = MiB;
inline constexpr Bytes kLongestValue = GiB;  // the longest message of RDMA verbs, section 3.2.1
inline constexpr Bytes kGranule = 32 * MiB;
inline constexpr Bytes kAllocatorOffset = 256;

inline constexpr std::array kParameterTable = std::to_array<Parameter>({
    {.name = "first_segment",
     .type = Count{2, std::uint64_t{1} << 32},
     .usual = 128,
     .what = "entries of the hash table's first segment, a power of two"},
    {.name = "segments",
     .type = Count{1, hstore::kMostSegments},
     .what = "the most segments of the hash table; else as many as the records need"},
    {.name = "neighborhood",
     .type = Count{1, hstore::kHops},
     .usual = hstore::kHops,
     .what = "entries in which hopscotch hashing looks for a key (H)"},
    {.name = "heap_region",
     .type = Count{kSmallestRegion, GiB},
     .unit = "bytes",
     .what =
         "a region of the heap, a power of two; else 1 MiB, or less if the records need little"},
    {.name = "granule",
     .type = Count{kSmallestRegion, std::uint64_t{1} << 36},
     .unit = "bytes",
     .what =
         "what the region allocator gives at a time, a multiple of heap_region; else 32 MiB, or "
         "less if the records need little"},
    {.name = "granules",
     .type = Count{1, std::uint64_t{1} << 24},
     .what = "of the shard's memory; else as many as the records need"},
    {.name = "max_key_size",
     .type = Count{1, kLongestKey},
     .unit = "bytes",
     .what = "the longest key that is taken"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 32,
     .what = "operations of one session under way at once"},
});

struct Parameters {
  hstore::Shape engine;
  Bytes granule = 0;
  std::uint64_t granules = 0;
  Bytes max_key_size = 0;
  Bytes max_value_size = 0;
  std::uint32_t queue_depth = 0;

  // What the region allocator divides: it begins behind the allocator's own data.
  RegionAllocator::Extent extent() const;

  // Throws UsageError if the configuration has an unknown parameter or is impossible.
  static Parameters of(const KvConfig& config);
};

}  // namespace perdura::systems::mcas
