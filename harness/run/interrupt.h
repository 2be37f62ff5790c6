// ^C and the polite kill: the point under way is given up, and what is done is kept. A second one
// ends the process at once.
#pragma once

#include <atomic>

namespace perdura::harness {

void watch_for_interrupts();
// As if a signal had come.
void interrupt();
// Whether one has.
bool was_signaled();

extern std::atomic<bool> interrupt_signaled;
// Cheap enough to be asked before each operation; from any thread.
inline bool interrupted() { return interrupt_signaled.load(std::memory_order_relaxed); }

}  // namespace perdura::harness
