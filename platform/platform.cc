#include "platform/platform.h"

#include <fmt/format.h>

#include "platform/error.h"

namespace perdura {

std::unique_ptr<pmem::Region> Node::create_region_at(MemoryPlace place, std::string_view name,
                                                     Bytes size, pmem::Medium medium) {
  if (place == MemoryPlace{}) return create_region(name, size, medium);
  throw UsageError(fmt::format(
      "region '{}': this platform cannot choose the NUMA node or the DIMM of memory; use sim",
      name));
}

}  // namespace perdura
