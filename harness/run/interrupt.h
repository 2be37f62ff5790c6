// ^C, the polite kill, and a terminal that is closed: the point under way is given up, and what is
// done is kept. A second one ends the process at once, and so does the first if nobody heeds it.
#pragma once

#include <atomic>
#include <chrono>

namespace perdura::harness {

// A line tells whoever sent the signal what happens now: at the root for SIGINT, and also for the
// others if no launcher started this process. A launcher sends SIGTERM to all ranks whenever one
// has ended, and then nobody has asked. A SIGHUP that is ignored (nohup) stays so.
void watch_for_interrupts(bool is_root, bool is_launched);
// A point notices within milliseconds, on a busy machine within some seconds.
inline constexpr std::chrono::seconds kPatience{10};
// From now on a first signal that is not heeded for so long ends the process with exit code 1 and
// its last words (last_words.h): work that is stuck does not ask whether it was interrupted.
void end_if_unheeded(std::chrono::seconds patience = kPatience);
// To be called when the interrupted work is about to end.
void heed_interrupt();
// Interrupts as a signal would.
void interrupt();
// Whether a signal has come.
bool was_signaled();

// Thrown to give up what is under way. Not a std::exception: those are failures.
struct Interrupted {};

extern std::atomic<bool> interrupt_signaled;
// Cheap enough to be called before each operation, from any thread.
inline bool interrupted() { return interrupt_signaled.load(std::memory_order_relaxed); }

}  // namespace perdura::harness
