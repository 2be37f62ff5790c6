// The message of a process that dies of a signal: which rank on which host it was, and what it was
// running.
#pragma once

#include <string>
#include <string_view>

namespace perdura::harness {

// From now on a crash (SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) of any thread is followed by a
// line on stderr, "perdura: WHO died of SIGABRT while running WHAT", and by whatever was to follow
// before, such as a core dump. `who` is "rank 3 on host b".
void promise_last_words(const std::string& who);

// Writes "perdura: WHO died of SIGABRT while running WHAT; THE END" in one piece, with `did` and
// `what` as "died of" and "SIGABRT"; `end` may be empty. Safe in a signal's handler.
void write_last_words(std::string_view did, std::string_view what, std::string_view end);

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

// "SIGABRT"; one of the above.
std::string_view name_of_crash(int signal);

// What is running, such as "point 7 (erda workloada)"; cut off after 400 bytes.
void set_last_words(const std::string& what);

}  // namespace perdura::harness
