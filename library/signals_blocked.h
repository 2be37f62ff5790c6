// Threads that the library starts in somebody else's program.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace perdura::library {

// A thread inherits the signals that are blocked where it is started. Without this the library's
// threads would take signals that the program has blocked in its own, to wait for them, and run the
// program's handlers, which then interrupt the library. Faults stay as they are: they are signals
// of the thread that makes them, and the program may have a handler that reports them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      ::sigdelset(&all, fault);
    }
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace perdura::library
