// The program that `perdura mojim run` starts, and all processes that come of it. They may outlive
// it, as daemons do, and go on to change the file and to sync it: a run ends after all of them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace perdura::mojim {

class ProgramProcess {
 public:
  // Executes a command in this environment ("NAME=VALUE"), so that whoever receives from the socket
  // looks at its calls (call_filter.h). Processes whose parent has ended become children of this
  // one from then on. Throws UsageError if the command cannot be executed, PlatformError if there
  // can be no process. Of one thread, since it forks.
  ProgramProcess(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment, int socket);

  // The program itself.
  pid_t id() const { return process_; }
  // Why nobody looks at its calls; nothing if somebody does.
  const std::optional<std::string>& why_unwatched() const { return why_unwatched_; }

  // The children of the calling process, as far as nobody has waited for them, but for the
  // `others`.
  static std::vector<pid_t> children(const std::vector<pid_t>& others);

 private:
  pid_t process_ = 0;
  std::optional<std::string> why_unwatched_;
};

// The status of a child when it has ended.
int wait_for(pid_t process);

}  // namespace perdura::mojim
