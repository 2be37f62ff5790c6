#include "program/mojim_signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "preload/program_process.h"

namespace perdura::program {

namespace {

volatile sig_atomic_t program_process = 0;
volatile sig_atomic_t pending_signal = 0;

extern "C" void hand_on(int signal, siginfo_t* about, void*) {
  const int before = errno;
  const pid_t program = program_process;
  if (program == 0) {
    pending_signal = signal;
  } else if (signal == SIGHUP || about->si_code != SI_KERNEL || getpgid(program) != getpgrp()) {
    // The kernel sends a terminal's signals to the whole process group, so the program has it
    // already. Only the hangup (SIGHUP) goes to the first process of the session alone.
    kill(program, signal);
  }
  errno = before;
}

}  // namespace

HandedOn::HandedOn() {
  struct sigaction action {};
  action.sa_sigaction = hand_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    struct sigaction& found = before_.at(i);
    sigaction(kEndingSignals.at(i), nullptr, &found);
    // An ignored signal stays ignored, as under nohup.
    if (found.sa_handler != SIG_IGN) sigaction(kEndingSignals.at(i), &action, nullptr);
  }
}

HandedOn::~HandedOn() {
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    sigaction(kEndingSignals.at(i), &before_.at(i), nullptr);
  }
}

int HandedOn::wait_for(pid_t process) const {
  program_process = process;
  if (pending_signal != 0) kill(process, pending_signal);
  pending_signal = 0;
  siginfo_t about{};
  while (waitid(P_PID, static_cast<id_t>(process), &about, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  program_process = 0;  // before another process can get the same number
  return preload::wait_for(process);
}

Blocked::Blocked() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kEndingSignals) sigaddset(&signals, signal);
  sigaddset(&signals, SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

Blocked::~Blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace perdura::program
