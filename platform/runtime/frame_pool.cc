#include "platform/runtime/frame_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace perdura::runtime {
namespace {

constexpr std::align_val_t kAlignment{kCacheLine};

// Frames are cut from blocks, each twice as large as the one before: a thread of a server has a few
// kilobytes of them; ten thousand simulated clients have fifty megabytes, on huge pages, which need
// few entries of the TLB.
class Block {
 public:
  void* cut(std::size_t size) {
    if (size > left_) more();
    left_ -= size;
    return begin_ + left_;
  }

 private:
  static constexpr std::size_t kHugePage = 2 * MiB;

  void more() {
    begin_ = static_cast<std::byte*>(::operator new (next_, std::align_val_t{next_}));
    left_ = next_;
    // If the kernel has no huge page, ordinary pages are used.
    if (next_ == kHugePage) ::madvise(begin_, next_, MADV_HUGEPAGE);
    next_ = std::min(2 * next_, kHugePage);
  }

  std::byte* begin_ = nullptr;
  std::size_t left_ = 0;
  std::size_t next_ = 64 * KiB;
};

// The frames of threads that have ended. Blocks are never freed: a frame may have come from another
// thread's block, and a thread does not know when all frames of its blocks are free.
struct LeftBehind {
  std::mutex mutex;
  std::array<FreeFrame*, kFrameClasses> frames{};
};
constinit LeftBehind left_behind;

// A frame that is released even later, by the destructor of another object of the thread, would be
// lost; that does not happen.
struct EndOfThread {
  ~EndOfThread() {
    const std::lock_guard lock(left_behind.mutex);
    for (std::size_t c = 0; c < kFrameClasses; ++c) {
      while (FreeFrame* const frame = free_frames[c]) {
        free_frames[c] = frame->next;
        frame->next = std::exchange(left_behind.frames[c], frame);
      }
    }
  }
};

void* take_left_behind(std::size_t frame_class) {
  const std::lock_guard lock(left_behind.mutex);
  FreeFrame*& frames = left_behind.frames[frame_class];
  return frames == nullptr ? nullptr : std::exchange(frames, frames->next);
}

}  // namespace

void* allocate_new_frame(std::size_t size) {
  const std::size_t c = frame_class(size);
  if (!PERDURA_POOL_FRAMES || c >= kFrameClasses) return ::operator new(c* kCacheLine, kAlignment);
  thread_local EndOfThread end_of_thread;
  static_cast<void>(&end_of_thread);  // forces the construction of the thread-local object
  if (void* const frame = take_left_behind(c)) return frame;
  thread_local constinit Block block;
  return block.cut(c * kCacheLine);
}

void release_frame_for_good(void* frame) noexcept { ::operator delete(frame, kAlignment); }

}  // namespace perdura::runtime
