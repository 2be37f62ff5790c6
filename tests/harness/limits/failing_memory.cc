// Preloaded into a program: one of its allocations by `operator new` is refused, as by a limit of
// memory. PERDURA_TEST_ALLOCATION: which one, counted from 0 in each process. The file that
// PERDURA_TEST_ALLOCATION_REFUSED names is made when it is refused.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> made{0};

void count() {
  static const char* const refused = std::getenv("PERDURA_TEST_ALLOCATION");
  if (refused == nullptr || made++ != std::atol(refused)) return;
  if (const char* const file = std::getenv("PERDURA_TEST_ALLOCATION_REFUSED")) {
    const int descriptor = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor >= 0) close(descriptor);
  }
  if (const auto handler = std::get_new_handler()) handler();
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  count();
  using New = void* (*)(std::size_t);
  static const auto next = reinterpret_cast<New>(dlsym(RTLD_NEXT, "_Znwm"));
  return next(size);
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  count();
  using New = void* (*)(std::size_t, std::align_val_t);
  static const auto next = reinterpret_cast<New>(dlsym(RTLD_NEXT, "_ZnwmSt11align_val_t"));
  return next(size, alignment);
}
