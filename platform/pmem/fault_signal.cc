#include "platform/pmem/fault_signal.h"

#include <fmt/core.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "platform/base/error.h"

namespace perdura::pmem {
namespace {

std::mutex adding;
std::array<std::atomic<ServeFault>, 4> functions{};
struct sigaction previous {};

// Passes the signal on to the handler that would have handled it otherwise.
void hand_on(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else if (previous.sa_handler == SIG_DFL || info->si_code > 0) {
    // The kernel does not let a process ignore a fault. A fault happens again when this function
    // returns; a signal that somebody sent has to be raised again.
    struct sigaction fatal {};
    fatal.sa_handler = SIG_DFL;
    ::sigaction(SIGSEGV, &fatal, nullptr);
    if (info->si_code <= 0) ::raise(SIGSEGV);
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto* const machine = static_cast<const ucontext_t*>(context);
  if (info->si_code == SEGV_ACCERR) {
    for (const auto& each : functions) {
      const ServeFault serve = each.load(std::memory_order_acquire);
      if (serve == nullptr) break;
      if (serve(*info, static_cast<unsigned long>(machine->uc_mcontext.gregs[REG_ERR]))) {
        errno = error;
        return;
      }
    }
  }
  hand_on(signal, info, context);
}

}  // namespace

void serve_faults(ServeFault serve) {
  const std::lock_guard held(adding);
  std::size_t count = 0;
  for (; count < functions.size() && functions[count] != nullptr; ++count) {
    if (functions[count] == serve) return;
  }
  if (count == functions.size()) throw PlatformError("too many who serve faults of memory");
  if (count == 0) {
    struct sigaction action {};
    action.sa_sigaction = handle;
    // A thread may wait in the handler for long, and be interrupted by a signal whose handler
    // touches such a page, too.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    if (::sigaction(SIGSEGV, &action, &previous) != 0) {
      throw PlatformError(fmt::format("cannot set a handler of SIGSEGV: {}", std::strerror(errno)));
    }
  }
  functions[count].store(serve, std::memory_order_release);
}

}  // namespace perdura::pmem
