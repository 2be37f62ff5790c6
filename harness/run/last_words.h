// What a process that dies of a signal has to say: which rank on which host it was, and what it was
// running.
#pragma once

#include <string>

namespace perdura::harness {

// From now on a crash (SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) of any thread is followed by a line
// on stderr, "perdura: WHO died of SIGABRT while running WHAT", and by whatever was to follow before,
// such as a core dump. `who` is "rank 3 on host b".
void promise_last_words(const std::string& who);

// What is running, such as "point 7 (erda workloada)"; cut off after 400 bytes.
void set_last_words(const std::string& what);

}  // namespace perdura::harness
