// Says of a region that all of it is going to be used, as a replica's memory is that is compared
// with another's. The host's memory for a model is then taken in huge pages: a page fault for each
// 4 KiB costs several times what the model itself does with them. A region of which nothing is said
// takes no memory for what nobody touches. Mapped files have the pages that their file system gives
// them.
#pragma once

#include "platform/pmem/region.h"

namespace perdura::pmem {

void expect_use_of_all(Region& region);

}  // namespace perdura::pmem
