// The storage engines of MCAS (section 3.2), and how a shard makes one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "systems/mcas/hstore/hstore.h"
#include "systems/mcas/storage/engine.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas {

enum class EngineKind : std::uint8_t {
  hstore,     // the table in persistent memory, the allocator in DRAM
  hstore_cc,  // both in persistent memory
  mapstore,   // everything in DRAM, so nothing outlives a restart
};
// Their names, in the order of EngineKind.
inline constexpr std::array<std::string_view, 3> kEngineNames{"hstore", "hstore-cc", "mapstore"};
constexpr EngineKind engine_named(std::string_view name) {
  std::uint8_t number = 0;
  while (kEngineNames[number] != name) ++number;
  return static_cast<EngineKind>(number);
}

// The memory that an engine needs besides its table and its items. root_size() is the size of its
// root, which lies in the memory that the region allocator divides. heap_map_size() is the size of
// the map of `heaps` bytes of heaps, which lies in front of that memory.
Bytes root_size(EngineKind kind);
Bytes heap_map_size(EngineKind kind, Bytes heaps, Bytes heap_region);

// Makes the engine of the pool with this identifier, in memory that `regions` gives to the pool.
// `regions` must outlive it. Engine::create() or recover() must be called next.
std::unique_ptr<Engine> make_engine(EngineKind kind, Memory memory, RegionAllocator& regions,
                                    std::uint64_t pool, const hstore::Shape& shape);

}  // namespace perdura::systems::mcas
