// System calls on a file in memory, for emulations of systems that work in the kernel. On real
// platforms they are real ones, on a file of their own that no other process sees; a model charges
// their time.
#pragma once

#include <memory>
#include <span>

#include "platform/base/units.h"

namespace perdura::bench {

class SystemCalls {
 public:
  virtual ~SystemCalls() = default;
  // msync(2) of the pages that hold these bytes of the file, which is mapped.
  virtual void sync(Bytes offset, Bytes length) = 0;
  // pwrite(2), which copies the data into the file's pages.
  virtual void write(Bytes offset, std::span<const std::byte> data) = 0;
};

// Throws PlatformError if the file cannot be made.
std::unique_ptr<SystemCalls> real_system_calls(Bytes file_size);
// Each call takes `time`, and write() the time of copying.
std::unique_ptr<SystemCalls> modelled_system_calls(Bytes file_size, Picoseconds time);

}  // namespace perdura::bench
