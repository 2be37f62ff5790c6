// Memory for coroutine frames: per-thread free lists by size, so that a task costs no allocation
// once a thread has warmed up. Frames are whole cache lines, which no other thread's share.
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

// Frames below 2 KiB are pooled, by their number of cache lines.
inline constexpr std::size_t kFrameClasses = 32;
constexpr std::size_t frame_class(std::size_t size) { return (size + kCacheLine - 1) / kCacheLine; }

// Of the calling thread. It has no destructor, so that reaching it takes no check; what it holds at
// the end of the thread is passed on to others by somebody else (frame_pool.cc).
inline constinit thread_local std::array<FreeFrame*, kFrameClasses> free_frames{};

// When there is no free frame of that size, or no list for it.
void* allocate_new_frame(std::size_t size);
void release_frame_for_good(void* frame) noexcept;

// The size is a constant wherever a coroutine begins, so little remains of this.
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
