// Removes all privileges of a process of untrusted code that it does not need. It keeps the memory
// that it has mapped, the descriptors that it has open, reading of the system's libraries, and
// computing.
#pragma once

#include <functional>

#include "platform/child_process.h"

namespace perdura {

// Confines the calling process, which has one thread, for good; this includes code that it loads
// later:
//
//   user        its user and group are its own, no other process has them, and it can change to no
//               other ones
//   Landlock    no file is opened but libraries and `limits.readable`, for reading; no /proc, no
//               directory of persistent memory, whoever owns it
//   seccomp     all system calls fail with EPERM but the few that computing needs: no ptrace or
//               process_vm_readv, no signals, processes, threads or sockets, and neither mremap nor
//               remap_file_pages, by which a mapped part of a file becomes another part; by
//               libseccomp
//   limits      of memory and open files, no core dumps, no files that grow
//
// `user_changed` is called right after the user has been changed, while all calls are still
// allowed. Throws PlatformError if the machine lacks one of them: the message says what is missing,
// and what to do.
void confine(const ChildLimits& limits, const std::function<void()>& user_changed);

// Throws PlatformError if a process that this one starts could not confine itself; the message says
// what is missing, and what to do.
void check_confinement();

}  // namespace perdura
