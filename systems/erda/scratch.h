// A buffer for the longest object, as large as a segment and initially zero. Each server thread has
// such buffers of several megabytes, of which only the pages touched by objects take memory: large
// buffers are mapped, since an allocator would zero memory that it reuses. Small ones come from the
// allocator: an exploration of failures creates and destroys a hundred thousand of a few hundred
// bytes, and each mapping costs two system calls, a page fault and an interruption of the other
// cores.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "platform/base/units.h"

namespace perdura::systems::erda {

class Scratch {
 public:
  explicit Scratch(Bytes size) : size_(size) {
    void* const memory = is_short() ? std::calloc(size, 1) : map(size);
    if (memory == nullptr) throw std::bad_alloc();
    bytes_ = static_cast<std::byte*>(memory);
  }
  ~Scratch() {
    if (is_short()) {
      std::free(bytes_);
    } else {
      ::munmap(bytes_, size_);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::byte* begin() { return bytes_; }
  std::byte* end() { return bytes_ + size_; }
  const std::byte* begin() const { return bytes_; }
  const std::byte* end() const { return bytes_ + size_; }

 private:
  static constexpr Bytes kShort = 64 * KiB;

  bool is_short() const { return size_ <= kShort; }
  static void* map(Bytes size) {
    void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? nullptr : mapped;
  }

  std::byte* bytes_ = nullptr;
  Bytes size_;
};

}  // namespace perdura::systems::erda
