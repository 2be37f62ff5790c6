#include "platform/runtime/frame_pool.h"

#include <new>
#include <utility>

namespace perdura::runtime {
namespace {

constexpr std::align_val_t kAlignment{kCacheLine};

// Gives the calling thread's free frames back when it ends. A frame that is released even later,
// by the destructor of some other object of the thread, is lost; nothing does that.
struct EndOfThread {
  ~EndOfThread() {
    for (FreeFrame*& head : free_frames) {
      while (head != nullptr) {
        FreeFrame* const frame = std::exchange(head, head->next);
        ::operator delete(frame, kAlignment);
      }
    }
  }
};

}  // namespace

void* allocate_new_frame(std::size_t size) {
  thread_local EndOfThread end_of_thread;
  static_cast<void>(&end_of_thread);  // so that it is made
  return ::operator new(frame_class(size) * kCacheLine, kAlignment);
}

void release_frame_for_good(void* frame) noexcept { ::operator delete(frame, kAlignment); }

}  // namespace perdura::runtime
