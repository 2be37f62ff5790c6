// Handling of signals that end `perdura mojim run`. A user who presses ^C means the program. If the
// run ended before the program, the copies would lack what it syncs until its end; so signals are
// forwarded to the program, and the copies' processes do not get them.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>

namespace perdura::program {

inline constexpr std::array kEndingSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP};

// While this object lives, signals to this process are forwarded to the process that it waits for.
// One that arrives while it waits for none is kept for the next.
class HandedOn {
 public:
  HandedOn();
  ~HandedOn();
  HandedOn(const HandedOn&) = delete;
  HandedOn& operator=(const HandedOn&) = delete;
  // Waits for the child's end and returns its status.
  int wait_for(pid_t process) const;

 private:
  std::array<struct sigaction, kEndingSignals.size()> before_{};
};

// Processes started while this object lives do not get the terminal's signals.
class Blocked {
 public:
  Blocked();
  ~Blocked();
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace perdura::program
