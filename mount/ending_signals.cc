#include "mount/ending_signals.h"

#include <pthread.h>
#include <signal.h>

#include <array>

namespace perdura::mount {

namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

void await_signal() {
  const sigset_t signals = ending_signals();
  int signal = 0;
  sigwait(&signals, &signal);
}

}  // namespace

BlockedSignals::BlockedSignals() {
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &pipe_before_);
}

// A second signal must not end the process before it has said why it ends.
BlockedSignals::~BlockedSignals() {
  const sigset_t signals = ending_signals();
  constexpr timespec kAtOnce{};
  while (sigtimedwait(&signals, nullptr, &kAtOnce) > 0) {
  }
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

SignalThread::SignalThread(std::function<void()> ended)
    : thread_([ended = std::move(ended)] {
        await_signal();
        ended();
      }),
      handle_(thread_.native_handle()) {}

SignalThread::~SignalThread() {
  end();
  thread_.join();
}

void SignalThread::end() const { pthread_kill(handle_, SIGTERM); }

}  // namespace perdura::mount
