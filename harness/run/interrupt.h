// Handles SIGINT (^C), SIGTERM, and SIGHUP (a closed terminal): the current point is abandoned and
// finished results are kept. A second signal ends the process at once, and so does the first if the
// process does not react to it.
#pragma once

#include <atomic>
#include <chrono>

namespace perdura::harness {

// Installs the handlers. A line on stderr tells the sender what happens next: for SIGINT at the
// root only; for the other signals only if no launcher started this process, since a launcher sends
// SIGTERM to all ranks whenever one has ended, without any user having asked. An ignored SIGHUP
// (nohup) stays ignored.
void watch_for_interrupts(bool is_root, bool is_launched);
// A point reacts within milliseconds, on a busy machine within some seconds.
inline constexpr std::chrono::seconds kPatience{10};
// From now on, a process that has not reacted `patience` after the first signal ends with exit code
// 1 and its crash message (crash_message.h): stuck work never checks interrupted().
void end_if_interrupt_ignored(std::chrono::seconds patience = kPatience);
// To be called when the interrupted work is about to end; cancels end_if_interrupt_ignored().
void heed_interrupt();
// Interrupts as a first signal does, but silently; the next signal still counts as the first.
void interrupt();
// True if a signal has arrived; interrupt() does not count.
bool was_signaled();

// Thrown to abandon the current work. Not a std::exception, because those are failures.
struct Interrupted {};

extern std::atomic<bool> interrupt_signaled;
// Cheap enough to be called before each operation, from any thread.
inline bool interrupted() { return interrupt_signaled.load(std::memory_order_relaxed); }

}  // namespace perdura::harness
