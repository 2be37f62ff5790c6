#include "platform/pmem/view.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace perdura::pmem::detail {

void outside_view(const Region& region, Bytes offset, std::size_t first, std::size_t count,
                  std::size_t size) {
  fmt::print(stderr,
             "perdura: access to elements {}..{} of a view that has {}, from byte {} of region {}, "
             "which has {}\n",
             first, first + count, size, offset, region.name(), region.size());
  std::abort();
}

}  // namespace perdura::pmem::detail
