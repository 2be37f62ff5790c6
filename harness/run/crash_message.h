// The message of a process that dies of a signal: its rank and host, and what it was running.
#pragma once

#include <string>
#include <string_view>

namespace perdura::harness {

// From now on, a crash (SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) of any thread prints "perdura:
// WHO died of SIGABRT while running WHAT" to stderr, and then takes its previous action, such as a
// core dump. `who` is "rank 3 on host b".
void install_crash_message(const std::string& who);

// Writes "perdura: WHO died of SIGABRT while running WHAT; THE END" in one piece, where `did` is
// "died of" and `what` is "SIGABRT"; `end` may be empty. Async-signal-safe.
void write_crash_message(std::string_view did, std::string_view what, std::string_view end);

// Called in the signal handler on a crash, after the line was written.
class CrashListener {
 public:
  // Must be async-signal-safe.
  virtual void crashed(int signal) noexcept = 0;

 protected:
  ~CrashListener() = default;
};
// Sets the listener, of which there is at most one; null removes it.
void tell_of_crashes(CrashListener* listener);

// "SIGABRT" for SIGABRT; `signal` must be one of those above.
std::string_view name_of_crash(int signal);

// Sets what is running, such as "point 7 (erda workloada)"; cut off after 400 bytes.
void set_crash_context(const std::string& what);

}  // namespace perdura::harness
