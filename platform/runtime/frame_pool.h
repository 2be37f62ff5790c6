// Memory for coroutine frames: per-thread free lists by size, so that a task costs no allocation
// once a thread has warmed up.
#pragma once

#include <cstddef>

namespace perdura::runtime {

void* allocate_frame(std::size_t size);
void release_frame(void* frame, std::size_t size) noexcept;

}  // namespace perdura::runtime
