// The process of a run that is Mojim's primary: it maps the file that programs use, and gives the
// copies what has changed in it when a program asks at a sync point (requests.h).
//
// It is a process of its own, so that programs need not be suitable to host a primary: they may
// fork, execute others, end in any way, close all descriptors and handle all signals. Their changes
// are found by comparing the file with what the copies have (sent_contents.h), whoever has made
// them and how.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "platform/pmem/mapped/mapping.h"
#include "preload/cluster.h"

namespace perdura::preload {

// Serves programs until the process is killed, or until the process that has started it and all
// programs that use the file are gone. A file that was replicated before is replicated from now on,
// another one from when a program maps or syncs it. Calls `serves` when programs can ask. `calls`:
// a socket from which it learns which system calls of programs it is to examine (call_watcher.h).
void serve_primary(const Cluster& cluster, int calls, const std::function<void()>& serves);

// The child process of `perdura mojim run` that is the primary. It ends with this object.
class PrimaryProcess {
 public:
  // Starts the process `perdura` (`program`) and returns when it serves; throws PlatformError if it
  // does not. `life`: CopyProcesses::life(), which the process keeps open.
  PrimaryProcess(const Cluster& cluster, const std::string& program, int life);
  ~PrimaryProcess();
  PrimaryProcess(const PrimaryProcess&) = delete;
  PrimaryProcess& operator=(const PrimaryProcess&) = delete;

  // Gives the copies everything that is in the file, after its programs have ended in an orderly
  // way: they need not have synced it. If that fails, prints a line that says why and returns
  // false.
  bool settle();
  pid_t id() const { return process_; }
  // The other end of the primary's socket for calls.
  int calls() const { return calls_.get(); }
  // True if a program has used the file, as far as the library in it, or the primary, has seen.
  bool is_used() const;

 private:
  void start(const Cluster& cluster, const std::string& program, int life);
  void end();

  std::string file_;
  pid_t process_ = 0;  // 0: there is none
  pmem::mapped::File calls_;
};

}  // namespace perdura::preload
