// Write-back of a mapped file of an ordinary file system: regions on a disk use it instead of
// flushing lines.
#pragma once

#include <memory>
#include <string>

#include "platform/pmem/region.h"

namespace perdura::pmem::mapped {

// Throws PlatformError if the file cannot be opened. An error of the disk ends the process: the
// disk may have lost data that will not be written again, so no caller can continue correctly.
std::shared_ptr<WriteBack> write_back_of(const std::string& path);

}  // namespace perdura::pmem::mapped
