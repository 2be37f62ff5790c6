#include "platform/pmem/whole_use.h"

#include <sys/mman.h>

namespace perdura::pmem {

void expect_use_of_all(Region& region) {
  constexpr Bytes kHugePage = 2 * MiB;
  // On a system without huge pages this is slower, which is no error.
  if (region.size() >= kHugePage) ::madvise(region.data(), region.size(), MADV_HUGEPAGE);
}

}  // namespace perdura::pmem
