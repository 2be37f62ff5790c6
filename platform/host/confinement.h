// Takes from a process of untrusted code what it does not need. What is left: memory that it has
// mapped, descriptors that it has open, reading the system's libraries, and computing.
#pragma once

#include <functional>

#include "platform/child_process.h"

namespace perdura {

// Of the calling process, which has one thread; for good, and for the code that it loads later:
//
//   its user and group are its own, no others have them, and it can become nobody else
//   Landlock    no file is opened but libraries and `limits.readable`, for reading; no /proc, no
//               directory of persistent memory, whoever owns it
//   seccomp     all system calls fail with EPERM but the few that computing needs: no ptrace or
//               process_vm_readv, no signals, processes, threads or sockets, and neither mremap nor
//               remap_file_pages, by which a mapped part of a file becomes another part; by
//               libseccomp
//   limits      of memory and open files, no core dumps, no files that grow
//
// `user_changed` is called as soon as that has happened, while all calls are still allowed. Throws
// PlatformError if the machine lacks one of them: what is missing, and what to do.
void confine(const ChildLimits& limits, const std::function<void()>& user_changed);

// Throws PlatformError if a process that this one starts could not do so: what is missing, and what
// to do.
void check_confinement();

}  // namespace perdura
