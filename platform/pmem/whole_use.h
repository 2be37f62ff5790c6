// Announces that all of a region is going to be used, such as a replica that is compared with
// another one. The host's memory for a model is then allocated in huge pages: a page fault for each
// 4 KiB costs several times as much as the model's own work on them. Without the announcement,
// pages that are never touched take no memory. Mapped files have the pages that their file system
// gives them.
#pragma once

#include "platform/pmem/region.h"

namespace perdura::pmem {

void expect_use_of_all(Region& region);

}  // namespace perdura::pmem
