// Prevents page faults of a pool that is going to be used at full speed.
#pragma once

#include <stop_token>

#include "platform/pmem/mapped/pool_file.h"

namespace perdura::pmem::mapped {

// True if the pool's pages are memory (tmpfs or DAX) rather than a disk's.
bool is_in_memory(const PoolFile& pool);

// Maps all pages of a pool to its memory, so that no first access to one takes a page fault: on
// tmpfs and DAX, whose pages a mapping otherwise gets one by one. Others may use the pool
// meanwhile. Does nothing for other files, which the kernel would read from the disk completely,
// nor where the kernel does not support it (before Linux 5.14). Returns early if it is asked to
// stop.
void populate(const PoolFile& pool, const std::stop_token& stop);

}  // namespace perdura::pmem::mapped
