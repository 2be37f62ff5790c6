// What a process that dies of a signal has to say: which rank on which host it was, and what it was
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

// Is told of a crash, after the line was written, in the signal's handler.
class CrashListener {
 public:
  // May do only what is safe in a signal's handler.
  virtual void crashed(int signal) noexcept = 0;

 protected:
  ~CrashListener() = default;
};
// One at a time; none if null.
void tell_of_crashes(CrashListener* listener);

// "SIGABRT"; one of the above.
std::string_view name_of_crash(int signal);

// What is running, such as "point 7 (erda workloada)"; cut off after 400 bytes.
void set_last_words(const std::string& what);

}  // namespace perdura::harness
