// Private anonymous memory of this process.
#pragma once

#include <memory>
#include <string_view>

#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/pages.h"

namespace perdura::pmem::mapped {

// Maps memory filled with zeros, in pages of that size. Throws PlatformError if the kernel has no
// such memory; the message begins with `what`, the purpose of the memory.
std::shared_ptr<Mapping> map_anonymous(std::string_view what, Bytes size, Pages pages);

}  // namespace perdura::pmem::mapped
