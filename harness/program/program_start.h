// The first steps of each program of this tree.
#pragma once

namespace perdura::harness {

// Prepares the process for restricted hosts, before anything is opened:
// - Closed descriptors 0, 1 and 2 (cron, daemons) are opened on /dev/null, so that no file of ours
//   gets such a number, and with it everything that is written to standard error.
// - The number of open files is raised to the hard limit.
// - Exceeding the file size limit (ulimit -f) is an error like a full disk, not a signal.
// - A failed allocation where no exception can be caught ends the process with one line and exit
//   code 1.
void start_program();

}  // namespace perdura::harness
