#include "systems/mcas/engines.h"

#include <stdexcept>

#include "systems/mcas/hstore_cc/log.h"
#include "systems/mcas/mapstore/mapstore.h"

namespace perdura::systems::mcas {

Bytes root_size(EngineKind kind) {
  return sizeof(hstore::TableRoot) + (kind == EngineKind::hstore_cc ? hstore_cc::Log::kSize : 0);
}

Bytes heap_map_size(EngineKind kind, Bytes heaps, Bytes heap_region) {
  return kind == EngineKind::hstore_cc ? hstore_cc::HeapMap::size(heaps, heap_region) : 0;
}

std::unique_ptr<Engine> make_engine(EngineKind kind, Memory memory, RegionAllocator& regions,
                                    std::uint64_t pool, const hstore::Shape& shape) {
  switch (kind) {
    case EngineKind::hstore:
      return std::make_unique<hstore::Hstore>(memory, regions, pool, shape);
    case EngineKind::hstore_cc:
      return std::make_unique<hstore::Hstore>(
          memory, regions, pool, shape,
          std::make_unique<hstore_cc::Log>(memory, regions, pool, shape.heap_map, shape.heap));
    case EngineKind::mapstore:
      return std::make_unique<mapstore::Mapstore>(memory, regions, pool, shape.heap);
  }
  throw std::logic_error("no such engine");
}

}  // namespace perdura::systems::mcas
