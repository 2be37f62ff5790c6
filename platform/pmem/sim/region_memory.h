// Allocates the host's memory for simulated regions.
#pragma once

#include <memory>

#include "platform/base/units.h"

namespace perdura::pmem::sim {

// Returns zeroed, page-aligned memory. Untouched pages take no memory, so a pool may be as large as
// on the real machine. Blocks of small regions are reused by the thread that frees them: the
// exploration of failures creates and destroys platforms thousands of times a second on every core,
// and each unmapping would interrupt the other cores, which share the address space (TLB
// shootdown). Throws std::bad_alloc if there is no memory for it, which explorations do not take for
// a finding about a system (platform/base/limits.h).
std::shared_ptr<void> allocate_region(Bytes size);

}  // namespace perdura::pmem::sim
