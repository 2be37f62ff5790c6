// Counts what a program allocates, and refuses one allocation, by operators new of its own. For one
// source of a program that has no other tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace perdura::test {

inline std::uint64_t allocations = 0;
// The number of the allocation that is refused, counted from 1.
inline std::uint64_t refused_allocation = 0;

inline void* allocate(std::size_t size, std::size_t alignment) {
  if (++allocations == refused_allocation) throw std::bad_alloc();
  // aligned_alloc wants whole multiples of the alignment.
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace perdura::test

// Not inline, or g++ sees free() of what it takes for memory of its own operator new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  return perdura::test::allocate(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return perdura::test::allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
