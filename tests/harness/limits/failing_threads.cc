// Preloaded into a program: the n-th start of a thread and all later ones are refused, as by a
// limit of processes. PERDURA_TEST_THREADS: how many may be started. The file that
// PERDURA_TEST_THREADS_REFUSED names is made when one is refused.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {
std::atomic<long> started{0};
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  const char* const most = std::getenv("PERDURA_TEST_THREADS");
  if (most == nullptr || started++ < std::atol(most)) {
    return create(thread, attributes, body, argument);
  }
  if (const char* const file = std::getenv("PERDURA_TEST_THREADS_REFUSED")) {
    const int descriptor = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor >= 0) close(descriptor);
  }
  return EAGAIN;
}
