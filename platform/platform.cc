#include "platform/platform.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura {

std::unique_ptr<pmem::Region> Node::create_region_at(MemoryPlace place, std::string_view name,
                                                     Bytes size, pmem::Medium medium) {
  if (place == MemoryPlace{}) return create_region(name, size, medium);
  throw UsageError(fmt::format(
      "region '{}': this platform cannot choose its memory so; sim chooses the NUMA node and the "
      "DIMM, verbs the size of DRAM's pages",
      name));
}

}  // namespace perdura
