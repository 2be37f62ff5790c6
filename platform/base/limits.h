// The operating system's limits for this process, as text for messages: a limit that is reached is
// named together with its value and the setting that changes it.
#pragma once

#include <exception>
#include <string>

namespace perdura {

// "ulimit -u (processes of the user) is 100, pids.max of the control group /app is 20": the limits
// of the number of threads, and those of memory, since each thread needs a stack.
std::string limits_of_threads();
// "ulimit -v (address space) is 512 MiB, memory.max ...": the limits of memory.
std::string limits_of_memory();
// "ulimit -n (open files of a process) is 64".
std::string limits_of_files();

// Throws PlatformError, which names the path and the limits, if `error` says that no further file
// can be opened: such a file must not be taken for one that does not exist.
void check_files_left(int error, const std::string& path);

// Raises the limit of open files of this process to the hard limit. Usual soft limits are meant for
// programs that pass descriptors to select(2), which is used nowhere here.
void raise_limit_of_files();

// "out of memory: ...", for a std::bad_alloc.
std::string out_of_memory();

// To be called by a handler that takes an exception for a finding about a run, such as a system's
// failure. Memory that this process was refused says nothing about the run, so that exception is
// thrown again.
void rethrow_refused_memory(const std::exception& error);

// The text for a message about any exception: out_of_memory() for memory that was refused, and the
// file and the reason for what the C++ library says of files.
std::string problem_text(const std::exception& error);

}  // namespace perdura
