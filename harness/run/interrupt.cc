#include "harness/run/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "harness/run/last_words.h"
#include "platform/base/units.h"

namespace perdura::harness {

alignas(kCacheLine) std::atomic<bool> interrupt_signaled{false};

namespace {

static_assert(std::atomic<bool>::is_always_lock_free);

// Not the same: after interrupt() a first signal, such as a launcher's, is not yet the second.
std::atomic<bool> signaled{false};
// Of whose signals a line tells; set before the first can come.
bool tells_of_interrupt = false;
bool tells_of_others = false;
// After so many seconds; 0: never.
std::atomic<unsigned> ends_if_unheeded{0};

void on_alarm(int) {
  write_last_words("did not stop", "when it was told to",
                   "it is ended now, and what was finished is kept");
  _exit(1);
}

// In a signal's handler, or as if in one.
void interrupt_now() {
  if (!interrupt_signaled.exchange(true)) alarm(ends_if_unheeded.load());
}

void on_signal(int signal) {
  interrupt_now();
  const bool is_second = signaled.exchange(true);
  // A launcher may tell its processes to end several times, and kills those that it has no patience
  // with.
  if (signal == SIGTERM && !tells_of_others) return;
  if (is_second) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  if (!(signal == SIGINT ? tells_of_interrupt : tells_of_others)) return;
  constexpr std::string_view message = "\ninterrupted: stopping; press ^C again to quit now\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message.data(), message.size());
}

}  // namespace

void interrupt() { interrupt_now(); }

void end_if_unheeded(std::chrono::seconds patience) {
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
