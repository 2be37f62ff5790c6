// Memory of this process alone.
#pragma once

#include <memory>
#include <string_view>

#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/pages.h"

namespace perdura::pmem::mapped {

// Zeros, in pages of that size. Throws PlatformError if there is no such memory; `what` it is for
// begins the message.
std::shared_ptr<Mapping> map_anonymous(std::string_view what, Bytes size, Pages pages);

}  // namespace perdura::pmem::mapped
