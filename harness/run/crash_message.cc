#include "harness/run/crash_message.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <string_view>

namespace perdura::harness {
namespace {

struct Crash {
  int signal;
  std::string_view name;
  struct sigaction before {};
};
std::array<Crash, 5> crashes{{{SIGABRT, "SIGABRT"},
                              {SIGSEGV, "SIGSEGV"},
                              {SIGBUS, "SIGBUS"},
                              {SIGFPE, "SIGFPE"},
                              {SIGILL, "SIGILL"}}};

// A signal handler may neither allocate nor lock, so the texts are prepared in advance. They are
// double-buffered: one is written while the handler may read the other.
struct Text {
  std::array<char, 400> bytes{};
  std::size_t size = 0;

  void operator=(std::string_view text) {
    size = std::min(text.size(), bytes.size());
    std::copy_n(text.begin(), size, bytes.begin());
  }
};
Text who;
std::array<Text, 2> what;
std::atomic<const Text*> current{nullptr};
std::atomic<CrashListener*> listener{nullptr};

Crash* find(int signal) {
  return std::find_if(crashes.begin(), crashes.end(),
                      [signal](const Crash& c) { return c.signal == signal; });
}

void on_crash(int signal) {
  const Crash* crash = find(signal);
  write_crash_message("died of", crash->name, "");
  if (CrashListener* told = listener.load()) told->crashed(signal);
  sigaction(signal, &crash->before, nullptr);
  raise(signal);
}

}  // namespace

void write_crash_message(std::string_view did, std::string_view what_it_was, std::string_view end) {
  std::array<char, 1400> line;  // room for both texts at their longest, and the caller's words
  std::size_t size = 0;
  const auto append = [&](std::string_view text) {
    std::copy(text.begin(), text.end(), line.begin() + size);
    size += text.size();
  };
  append("perdura: ");
  append({who.bytes.data(), who.size});
  append(" ");
  append(did);
  append(" ");
  append(what_it_was);
  if (const Text* text = current.load()) {
    append(" while running ");
    append({text->bytes.data(), text->size});
  }
  if (!end.empty()) append("; ");
  append(end);
  append("\n");
  // Written in one call, since other ranks write to the same terminal.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), size);
}

void install_crash_message(const std::string& name) {
  who = name;
  struct sigaction action {};
  action.sa_handler = on_crash;
  sigemptyset(&action.sa_mask);
  for (Crash& crash : crashes) {
    struct sigaction before {};
    sigaction(crash.signal, &action, &before);
    // On a second call the handler that was installed before the first call is kept.
    if (before.sa_handler != on_crash) crash.before = before;
  }
}

void tell_of_crashes(CrashListener* told) { listener.store(told); }

std::string_view name_of_crash(int signal) { return find(signal)->name; }

void set_crash_context(const std::string& text) {
  Text& next = current.load() == &what[0] ? what[1] : what[0];
  next = text;
  current.store(&next);
}

}  // namespace perdura::harness
