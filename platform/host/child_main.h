// main() of programs that are child processes on the real platforms (platform/child_process.h).
#pragma once

#include "platform/child_process.h"

namespace perdura {

// Maps the memory that the parent gives, confines the process unless the parent's order
// (ChildOrder) says otherwise, and runs the body of the program. Returns the exit code. The program
// must have been started as a child process (ChildProcesses::start_child).
int run_child(const ChildProgram& program);

}  // namespace perdura
