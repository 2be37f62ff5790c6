#include "systems/mcas/engines.h"

#include <stdexcept>

namespace perdura::systems::mcas {

std::unique_ptr<Engine> make_engine(EngineKind kind, Memory memory, RegionAllocator& regions,
                                    std::uint64_t pool, const hstore::Shape& shape) {
  switch (kind) {
    case EngineKind::hstore:
      return std::make_unique<hstore::Hstore>(memory, regions, pool, shape);
  }
  throw std::logic_error("no such engine");
}

}  // namespace perdura::systems::mcas
