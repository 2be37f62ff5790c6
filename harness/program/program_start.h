// The first steps of each program of this tree.
#pragma once

namespace perdura::harness {

// Prepares the process for hosts that give it less than usual, before anything is opened:
// - descriptors 0, 1 and 2 that are closed (cron, daemons) lead to /dev/null, so that no file of
//   ours gets their number and with it what is written to standard error;
// - as many files may be open as the hard limit allows;
// - a file that exceeds its size limit (ulimit -f) is an error like a full disk, and no signal;
// - memory that is refused where no exception can be caught ends the process with one line and exit
//   code 1.
void start_program();

}  // namespace perdura::harness
