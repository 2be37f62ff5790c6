// An allocator of coroutine frames. Each thread has a free list for each frame size, so that
// starting a task allocates nothing once the thread has warmed up. A frame occupies whole cache
// lines, so no two threads share a line (no false sharing).
#pragma once

#include <array>
#include <cstddef>

#include "platform/base/units.h"

#if defined(__SANITIZE_ADDRESS__)
#define PERDURA_POOL_FRAMES 0  // pooling would hide a use after free
#else
#define PERDURA_POOL_FRAMES 1
#endif

namespace perdura::runtime {

struct FreeFrame {
  FreeFrame* next;
};

// Frames below 2 KiB are pooled. The size class of a frame is its number of cache lines.
inline constexpr std::size_t kFrameClasses = 32;
constexpr std::size_t frame_class(std::size_t size) { return (size + kCacheLine - 1) / kCacheLine; }

// The calling thread's free lists, by size class. The array has no destructor, so that accessing it
// needs no initialization check; when the thread ends, frame_pool.cc hands its free frames to other
// threads.
inline constinit thread_local std::array<FreeFrame*, kFrameClasses> free_frames{};

// The slow path: used if the free list is empty or frames of this size are not pooled.
void* allocate_new_frame(std::size_t size);
void release_frame_for_good(void* frame) noexcept;

// The size is a compile-time constant wherever a coroutine begins, so the compiler reduces this to
// a few instructions.
inline void* allocate_frame(std::size_t size) {
  const std::size_t c = frame_class(size);
  if (PERDURA_POOL_FRAMES && c < kFrameClasses) {
    if (FreeFrame* frame = free_frames[c]) [[likely]] {
      free_frames[c] = frame->next;
      return frame;
    }
  }
  return allocate_new_frame(size);
}

inline void release_frame(void* frame, std::size_t size) noexcept {
  const std::size_t c = frame_class(size);
  if (PERDURA_POOL_FRAMES && c < kFrameClasses) {
    auto* free = static_cast<FreeFrame*>(frame);
    free->next = free_frames[c];
    free_frames[c] = free;
    return;
  }
  release_frame_for_good(frame);
}

}  // namespace perdura::runtime
