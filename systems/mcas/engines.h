// The storage engines of MCAS (section 3.2), and how a shard makes one.
#pragma once

#include <cstdint>
#include <memory>

#include "systems/mcas/hstore/hstore.h"
#include "systems/mcas/storage/engine.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas {

enum class EngineKind : std::uint8_t {
  hstore,     // the table in persistent memory, the allocator in DRAM
  hstore_cc,  // both in persistent memory
  mapstore,   // all in DRAM, so nothing outlives a restart
};

// The engine of the pool with this identifier, in memory that the region allocator, which must
// outlive it, gives to the pool. Engine::create() or recover() is to be called next.
std::unique_ptr<Engine> make_engine(EngineKind kind, Memory memory, RegionAllocator& regions,
                                    std::uint64_t pool, const hstore::Shape& shape);

}  // namespace perdura::systems::mcas
