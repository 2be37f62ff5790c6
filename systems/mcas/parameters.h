// The parameters of MCAS, `[systems.mcas]`, and the layout of a shard's memory:
//
//      0          256         multiple of a line, as the next    first
//      +----------+-----------+--------------------+-------------+-----------+-----------+---
//      | header   | catalog   | region allocator   | heap map    | granule 0 | granule 1 | ...
//      +----------+-----------+--------------------+-------------+-----------+-----------+---
//
// Only hstore-cc has a heap map (hstore_cc/heap_map.h).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/child_process.h"
#include "services/kv/kv.h"
#include "services/objects/objects.h"
#include "systems/flushing.h"
#include "systems/mcas/engines.h"
#include "systems/mcas/hstore/hstore.h"
#include "systems/mcas/storage/catalog.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas {

inline constexpr std::string_view kName = "mcas";

inline constexpr Bytes kLongestMessage = GiB;  // the limit of RDMA verbs, section 3.2.1
inline constexpr Bytes kLongestValue = kLongestMessage;
// A key travels in a message, together with the rest of a request.
inline constexpr Bytes kLongestKey = kLongestMessage - 4 * KiB;
inline constexpr Bytes kGranule = 32 * MiB;
inline constexpr Bytes kCatalogOffset = 256;
// The longest value that is put without a direct transfer, as in Table 1.
inline constexpr Bytes kLongestInMessage = 2 * MiB;

inline constexpr std::array kParameterTable = std::to_array<Parameter>({
    {.name = "engine",
     .type = OneOf{kEngineNames},
     .usual = "hstore",
     .what = "the storage engine; that of hstore-cc has its allocator in persistent memory, and "
             "that of mapstore all in DRAM, so that nothing outlives a restart"},
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
     .what = "granules of the shard's memory; else as many as the records need"},
    {.name = "max_key_size",
     .type = Count{1, kLongestKey},
     .unit = "bytes",
     .what = "the longest key that is taken; each request that may be in flight has room for it"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 32,
     .what = "operations of one session under way at once"},
    {.name = "pools",
     .type = Count{1, 4096},
     .usual = 32,
     .what = "pools that a shard can have at once"},
    {.name = "direct_piece",
     .type = Count{kCacheLine, GiB},
     .usual = MiB,
     .unit = "bytes",
     .what =
         "bytes that one READ or WRITE of a direct transfer moves; a longer value takes several"},
    {.name = "plugins",
     .type = Name{},
     .usual = "",
     .what = "plugins of active data objects, in the order in which they are called, with commas "
             "between "
             "them: passthru, versioning, aggregate, replicate, or paths of shared objects"},
    {.name = "plugin_signals",
     .type = Flag{},
     .usual = false,
     .what = "plugins are told of puts, gets and erases, which complete when they have been told"},
    {.name = "plugin_patience",
     .type = Count{1, 3'600'000},
     .usual = 10'000,
     .unit = "ms",
     .what = "after which a process of active data objects that does not answer is ended"},
    {.name = "plugin_consent",
     .type = Flag{},
     .usual = false,
     .what =
         "a put or an erase that the plugins do not agree to, or cannot be told of, is answered "
         "as failed; its change stays"},
    {.name = "plugin_peer",
     .type = Count{0, std::numeric_limits<NodeId>::max()},
     .what = "the node whose first shard plugins may be clients of; without it they are clients of "
             "none"},
    {.name = "plugin_cores",
     .type = Name{},
     .usual = "",
     .what = "on which processes of active data objects run, with commas between them; else any"},
    {.name = "plugin_memory",
     .type = Count{MiB, std::uint64_t{1} << 40},
     .usual = 256 * MiB,
     .unit = "bytes",
     .what = "that a process of active data objects may have besides its pool"},
    {.name = "plugin_isolation",
     .type = Flag{},
     .usual = true,
     .what = "processes of active data objects reach nothing but their pool; if the machine cannot "
             "ensure that they are not started"},
});

// The records that a store was created for. Memory of another shape would be misread or too small.
struct Planned {
  // Sizes of the typical record. All are 0 for a shard that was created for pools of any records.
  std::uint64_t key_size = 0;
  std::uint64_t value_size = 0;
  std::uint64_t records = 0;
  friend bool operator==(const Planned&, const Planned&) = default;
};

struct Parameters {
  Planned planned;
  Flushing flushing = Flushing::lines;
  EngineKind kind = EngineKind::hstore;
  hstore::Shape engine;  // the same for all pools of the shard
  Bytes granule = 0;
  std::uint64_t granules = 0;
  Bytes max_key_size = 0;
  Bytes max_value_size = 0;  // the limit for values that travel in messages
  std::uint32_t queue_depth = 0;
  std::uint32_t sessions = 0;
  std::uint32_t pools = 0;
  Bytes direct_piece = 0;
  std::vector<std::string> plugins;  // empty: there are no active data objects
  bool plugin_signals = false;
  bool plugin_consent = false;  // only with signals
  std::optional<fabric::Address> plugin_peer;
  Picoseconds plugin_patience{};
  ChildLimits plugin_limits{};  // per process

  Bytes allocator_offset() const { return kCatalogOffset + Catalog::size(pools); }
  Bytes heap_map_offset() const;
  // The memory that the region allocator divides; it follows the heap map.
  RegionAllocator::Extent extent() const;

  // The parameters of a shard for one pool with the records of the configuration, and of a shard
  // for any pools. Both throw UsageError if the configuration has an unknown parameter or is
  // impossible.
  static Parameters of(const kv::KvConfig& config);
  static Parameters of(const objects::Config& config);
};

}  // namespace perdura::systems::mcas
