#include "systems/mcas/engines.h"

#include <stdexcept>

#include "systems/mcas/hstore_cc/log.h"
#include "systems/mcas/mapstore/mapstore.h"

namespace perdura::systems::mcas {

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
