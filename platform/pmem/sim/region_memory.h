// The host's memory of simulated regions.
#pragma once

#include <memory>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::pmem::sim {

// Zeros, from a page's beginning on. Pages that nobody touches cost nothing, so a pool may be as
// large as on the real machine. Blocks of small regions are used again by the thread that gives
// them back: who explores failures makes and drops a platform thousands of times a second on every
// core, and mappings that come and go interrupt the other cores, which share the address space.
// Throws PlatformError if there is no such memory for region `name`.
std::shared_ptr<void> allocate_region(std::string_view name, Bytes size);

}  // namespace perdura::pmem::sim
