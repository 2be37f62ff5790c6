// The process of a run that is Mojim's primary: it maps the file that programs use, and gives the
// copies what has changed in it when a program asks at a sync point (requests.h).
//
// It is a process of its own, so that programs need not be such that a primary can live in them:
// they may fork, execute others, end in any way, close all descriptors and handle all signals. What
// they change is found by comparing the file with what the copies have (sent_contents.h), whoever
// has changed it and how.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "library/mojim/cluster.h"

namespace perdura::mojim {

// Serves programs until the process is killed, or until the process that has started it and all
// programs that use the file are gone. The file is replicated from now on if it was before, else
// from when a program maps or syncs it. Calls `serves` when programs can ask. `calls`: a socket
// from which it learns which system calls of programs it is to look at (call_watcher.h).
void serve_primary(const Cluster& cluster, int calls, const std::function<void()>& serves);

// Of `perdura mojim run`: the child that is the primary, which ends with this object.
class PrimaryProcess {
 public:
  // Returns when it serves; throws PlatformError if it does not. `program`: perdura itself.
  PrimaryProcess(const Cluster& cluster, const std::string& program);
  ~PrimaryProcess();
  PrimaryProcess(const PrimaryProcess&) = delete;
  PrimaryProcess& operator=(const PrimaryProcess&) = delete;

  // Gives the copies all that is in the file, when its programs have ended in an orderly way: they
  // need not have synced it. False, after a line that says why, if that cannot be.
  bool settle();
  pid_t id() const { return process_; }
  // The other end of the primary's socket for calls.
  int calls() const { return calls_; }
  // Whether a program has used the file, as far as the library in it has seen.
  bool is_used() const;

 private:
  std::string file_;
  pid_t process_ = 0;
  int calls_ = -1;
};

}  // namespace perdura::mojim
