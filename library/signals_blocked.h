// Keeps signals away from the threads that the library starts in its user's program.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace perdura::library {

// Blocks signals while threads are started, since a thread inherits the blocked signals of the
// thread that starts it. Otherwise the library's threads would take signals that the program has
// blocked in its own threads, to wait for them, and would run the program's handlers, which then
// interrupt the library. Signals of faults stay as they are: they concern the thread that causes
// them, and the program may have a handler that reports them.
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
