// The program that `perdura mojim run` starts, and all processes that descend from it. They may
// outlive it, as daemons do, and go on to change the file and to sync it: a run ends after all of
// them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace perdura::preload {

class ProgramProcess {
 public:
  // Executes a command in this environment ("NAME=VALUE"), with its calls held for whoever receives
  // from the socket (call_filter.h). From then on, processes whose parent has ended become children
  // of this one. Throws UsageError if the command cannot be executed, PlatformError if no process
  // can be made. The calling process must have one thread, since this forks.
  ProgramProcess(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment, int socket);

  // The program itself.
  pid_t id() const { return process_; }
  // The reason why the program's calls are not held; nothing if they are.
  const std::optional<std::string>& why_unwatched() const { return why_unwatched_; }

  // The children of the calling process that nobody has waited for yet, without the `others`.
  static std::vector<pid_t> children(const std::vector<pid_t>& others);

 private:
  pid_t process_ = 0;
  std::optional<std::string> why_unwatched_;
};

// Waits until a child has ended, and returns its status.
int wait_for(pid_t process);

}  // namespace perdura::preload
