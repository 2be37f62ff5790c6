#include "platform/runtime/frame_pool.h"

#include <array>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define PERDURA_POOL_FRAMES 0  // pooling would hide a use after free
#else
#define PERDURA_POOL_FRAMES 1
#endif

namespace perdura::runtime {
namespace {

constexpr std::size_t kClass = 64;
constexpr std::size_t kClasses = 32;  // frames up to 2 KiB are pooled

struct FreeFrame {
  FreeFrame* next;
};

struct Pool {
  std::array<FreeFrame*, kClasses> free{};
  bool open = true;

  ~Pool() {
    open = false;
    for (FreeFrame*& head : free) {
      while (head != nullptr) ::operator delete(std::exchange(head, head->next));
    }
  }
};

thread_local Pool pool;

std::size_t size_class(std::size_t size) { return (size + kClass - 1) / kClass; }

}  // namespace

void* allocate_frame(std::size_t size) {
  const std::size_t c = size_class(size);
  if (PERDURA_POOL_FRAMES && c < kClasses) {
    if (FreeFrame* frame = pool.free[c]) {
      pool.free[c] = frame->next;
      return frame;
    }
    return ::operator new(c* kClass);
  }
  return ::operator new(size);
}

void release_frame(void* frame, std::size_t size) noexcept {
  const std::size_t c = size_class(size);
  if (PERDURA_POOL_FRAMES && c < kClasses && pool.open) {
    auto* free = static_cast<FreeFrame*>(frame);
    free->next = pool.free[c];
    pool.free[c] = free;
    return;
  }
  ::operator delete(frame);
}

}  // namespace perdura::runtime
