// The signals that ask a serving process to end: SIGINT, SIGTERM and SIGHUP.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <functional>

#include "platform/host/os_thread.h"

namespace perdura::mount {

// Blocks the signals in the calling thread, and in those that it starts, as long as the object exists;
// also ignores SIGPIPE, so that the process survives if nobody reads its output any more.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
  struct sigaction pipe_before_ {};
};

// A thread that waits for such a signal and then calls `ended`, once. The signals must be blocked.
class SignalThread {
 public:
  explicit SignalThread(std::function<void()> ended);
  // Has the effect of a signal, and waits until the call has returned.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  // Has the effect of a signal. May be called more than once.
  void end() const;

 private:
  OsThread thread_;
  pthread_t handle_;
};

}  // namespace perdura::mount
