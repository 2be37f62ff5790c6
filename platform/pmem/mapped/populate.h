// Page faults of a pool that is going to be used at full speed.
#pragma once

#include <stop_token>

#include "platform/pmem/mapped/pool_file.h"

namespace perdura::pmem::mapped {

// Whether its pages are memory: of tmpfs or DAX, not of a disk.
bool is_in_memory(const PoolFile& pool);

// Maps all pages of a pool to its memory, so that nobody's first access to one takes a page fault:
// on tmpfs and DAX, whose pages a mapping otherwise gets one by one. Others may use the pool
// meanwhile. Does nothing for other files, all of which the kernel would read from the disk, nor
// where the kernel cannot do it (before Linux 5.14). Returns early if it is asked to stop.
void populate(const PoolFile& pool, const std::stop_token& stop);

}  // namespace perdura::pmem::mapped
