// A region of which a process may access only some parts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/pmem/mapped/mapping.h"

namespace perdura::pmem::mapped {

// Maps parts of a region, which has the extent `region` in the file, at their offsets in memory of
// the region's size; nothing is mapped between them. Throws PlatformError; `name` is used in its
// message.
std::shared_ptr<Mapping> map_parts(int fd, Extent region, const std::vector<Extent>& parts,
                                   const std::string& name);

}  // namespace perdura::pmem::mapped
