// Write-back of a mapped file of an ordinary file system: what a region on a disk does instead of
// flushing lines.
#pragma once

#include <memory>
#include <string>

#include "platform/pmem/region.h"

namespace perdura::pmem::mapped {

// Throws PlatformError if the file cannot be opened. An error of the disk, which may have lost
// something that nobody will write again, ends the process: no caller can go on correctly.
std::shared_ptr<WriteBack> write_back_of(const std::string& path);

}  // namespace perdura::pmem::mapped
