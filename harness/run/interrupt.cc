#include "harness/run/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "harness/run/crash_message.h"
#include "platform/base/units.h"

namespace perdura::harness {

alignas(kCacheLine) std::atomic<bool> interrupt_signaled{false};

namespace {

static_assert(std::atomic<bool>::is_always_lock_free);

// Not the same as interrupt_signaled: after interrupt() the first real signal, such as one from a
// launcher, must not count as the second.
std::atomic<bool> signaled{false};
// The kinds of signals that are announced by a line; set before the first one can arrive.
bool tells_of_interrupt = false;
bool tells_of_others = false;
// Seconds after which the process is ended if it does not react; 0 means never.
std::atomic<unsigned> ends_if_unheeded{0};

void on_alarm(int) {
  write_crash_message("did not stop", "when it was told to",
                      "it is ended now, and what was finished is kept");
  _exit(1);
}

// Called in a signal handler, or under the same restrictions.
void interrupt_now() {
  if (!interrupt_signaled.exchange(true)) alarm(ends_if_unheeded.load());
}

void on_signal(int signal) {
  interrupt_now();
  const bool is_second = signaled.exchange(true);
  // A launcher may send SIGTERM several times, and kills its processes itself in the end, so a
  // second SIGTERM does not end this process.
  if (signal == SIGTERM && !tells_of_others) return;
  if (is_second) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  if (!(signal == SIGINT ? tells_of_interrupt : tells_of_others)) return;
  // The sender of another signal may have no terminal to press ^C on.
  const std::string_view message =
      signal == SIGINT ? "\ninterrupted: stopping; press ^C again to quit now\n"
                       : "\ninterrupted: stopping; the same signal again ends it at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message.data(), message.size());
}

}  // namespace

void interrupt() { interrupt_now(); }

void end_if_interrupt_ignored(std::chrono::seconds patience) {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  ends_if_unheeded.store(static_cast<unsigned>(patience.count()));
}

void heed_interrupt() {
  ends_if_unheeded.store(0);
  alarm(0);
}

bool was_signaled() { return signaled.load(); }

void watch_for_interrupts(bool is_root, bool is_launched) {
  tells_of_interrupt = is_root;
  tells_of_others = !is_launched;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

}  // namespace perdura::harness
