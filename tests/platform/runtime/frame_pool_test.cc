#include "platform/runtime/frame_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace perdura::runtime {
namespace {

constexpr std::size_t kSizes[] = {1, 64, 65, 200, 1000, 1984, 2000, 5000, 70000};

// Of every size, so many that several blocks are needed: whole, apart and aligned.
TEST(FramePool, FramesDoNotOverlap) {
  struct Frame {
    unsigned char* bytes;
    std::size_t size;
  };
  std::vector<Frame> frames;
  for (int round = 0; round < 200; ++round) {
    for (const std::size_t size : kSizes) {
      auto* const bytes = static_cast<unsigned char*>(allocate_frame(size));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(bytes) % kCacheLine, 0U);
      std::memset(bytes, static_cast<int>(frames.size() % 251), size);
      frames.push_back({bytes, size});
    }
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    for (std::size_t byte = 0; byte < frames[i].size; ++byte) {
      ASSERT_EQ(frames[i].bytes[byte], i % 251) << "frame " << i << ", byte " << byte;
    }
    release_frame(frames[i].bytes, frames[i].size);
  }
}

#if PERDURA_POOL_FRAMES
TEST(FramePool, WhatAThreadLeavesBehindServesTheNext) {
  constexpr std::size_t kSize = 640;
  const auto frames_of_a_thread = [] {
    std::set<void*> frames;
    std::thread([&] {
      for (int i = 0; i < 300; ++i) frames.insert(allocate_frame(kSize));
      for (void* const frame : frames) release_frame(frame, kSize);
    }).join();
    return frames;
  };
  const std::set<void*> first = frames_of_a_thread();
  EXPECT_EQ(first.size(), 300U);
  EXPECT_EQ(frames_of_a_thread(), first);
}

// A task may end on another thread than the one that made it, and that one may be gone by then.
TEST(FramePool, AFrameMayOutliveItsThread) {
  constexpr std::size_t kSize = 320;
  unsigned char* frame = nullptr;
  std::thread([&] { frame = static_cast<unsigned char*>(allocate_frame(kSize)); }).join();
  std::memset(frame, 7, kSize);
  release_frame(frame, kSize);
  EXPECT_EQ(allocate_frame(kSize), frame);
  release_frame(frame, kSize);
}
#endif

}  // namespace
}  // namespace perdura::runtime
