// A buffer for the longest object, as large as a segment and zero at first. Each server thread has
// such buffers of several megabytes, of which only those pages take memory that an object has
// touched: they are mapped, since an allocator would zero what it has used before.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

#include "platform/base/units.h"

namespace perdura::systems::erda {

class Scratch {
 public:
  explicit Scratch(Bytes size) : size_(size) {
    void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    bytes_ = static_cast<std::byte*>(mapped);
  }
  ~Scratch() { ::munmap(bytes_, size_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::byte* begin() { return bytes_; }
  std::byte* end() { return bytes_ + size_; }
  const std::byte* begin() const { return bytes_; }
  const std::byte* end() const { return bytes_ + size_; }

 private:
  std::byte* bytes_ = nullptr;
  Bytes size_;
};

}  // namespace perdura::systems::erda
