// ^C and the polite kill: the point under way is given up, and what is done is kept. A second one
// ends the process at once.
#pragma once

namespace perdura::harness {

void watch_for_interrupts();
// Cheap enough to be asked before each operation; from any thread.
bool interrupted();

}  // namespace perdura::harness
