// A buffer for the longest object, as large as a segment and zero at first. Each server thread has
// such buffers of several megabytes, of which only those pages take memory that an object has
// touched.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "platform/base/units.h"

namespace perdura::systems::erda {

class Scratch {
 public:
  explicit Scratch(Bytes size)
      : bytes_(static_cast<std::byte*>(std::calloc(size, 1))), size_(size) {
    if (bytes_ == nullptr) throw std::bad_alloc();
  }

  std::byte* begin() { return bytes_.get(); }
  std::byte* end() { return bytes_.get() + size_; }
  const std::byte* begin() const { return bytes_.get(); }
  const std::byte* end() const { return bytes_.get() + size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  Bytes size_;
};

}  // namespace perdura::systems::erda
