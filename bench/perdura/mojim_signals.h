// Signals that end `perdura mojim run`. Whoever presses ^C means the program. If the run ended
// before it, the copies would lack what the program syncs until its end; so signals are handed on
// to the program, and the copies do not get them.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>

namespace perdura::harness {

inline constexpr std::array kEndingSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP};

// While this lives, signals of this process are those of the process that it waits for. One that
// comes while it waits for none is kept for the next.
class HandedOn {
 public:
  HandedOn();
  ~HandedOn();
  HandedOn(const HandedOn&) = delete;
  HandedOn& operator=(const HandedOn&) = delete;
  // The status of the child when it has ended.
  int wait_for(pid_t process) const;

 private:
  std::array<struct sigaction, kEndingSignals.size()> before_{};
};

// Processes that are started while this lives do not get signals of the terminal.
class Blocked {
 public:
  Blocked();
  ~Blocked();
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace perdura::harness
