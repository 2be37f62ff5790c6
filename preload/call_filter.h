// The filter of the system calls of a run's programs that the kernel holds until the primary has
// looked at them (call_watcher.h): those that sync a file or map it, by whatever code they are
// made. The preloaded library sees calls of the C library alone, and is not in programs that are
// linked statically; Go and liburing make system calls by instructions of their own.
//
// The filter (seccomp) holds for a process and for all that it starts, and cannot be taken off.
#pragma once

namespace perdura::preload {

class CallFilter {
 public:
  // Throws PlatformError.
  CallFilter();
  ~CallFilter();
  CallFilter(const CallFilter&) = delete;
  CallFilter& operator=(const CallFilter&) = delete;

  // Called in the process that is about to execute the program: from now on its calls are held, and
  // whoever receives from this socket may look at them. Returns 0, or an errno, and then none is
  // held.
  int begin(int socket);

 private:
  void* filter_;
};

// Returns the kernel's descriptor for held calls that begin() has sent to the other end of this
// socket; -1 if the other end was closed without that.
int receive_held_calls(int socket);

}  // namespace perdura::preload
