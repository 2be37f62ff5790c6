// ^C, the polite kill, and a terminal that is closed: the point under way is given up, and what is
// done is kept. A second one ends the process at once.
#pragma once

#include <atomic>

namespace perdura::harness {

// A line tells whoever sent the signal what happens now: at the root for SIGINT, and also for the
// others if no launcher started this process. A launcher sends SIGTERM to all ranks whenever one
// has ended, and then nobody has asked. A SIGHUP that is ignored (nohup) stays so.
void watch_for_interrupts(bool is_root, bool is_launched);
// As if a signal had come.
void interrupt();
// Whether one has.
bool was_signaled();

extern std::atomic<bool> interrupt_signaled;
// Cheap enough to be asked before each operation; from any thread.
inline bool interrupted() { return interrupt_signaled.load(std::memory_order_relaxed); }

}  // namespace perdura::harness
