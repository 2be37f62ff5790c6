#include "preload/copy_processes.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "platform/base/error.h"
#include "preload/execution.h"
#include "preload/program_process.h"
#include "preload/start_report.h"

namespace perdura::preload {

CopyProcesses::CopyProcesses(const Cluster& cluster, const std::string& program) {
  std::array<int, 2> said{};
  if (pipe(said.data()) != 0) throw PlatformError(fmt::format("pipe: {}", std::strerror(errno)));
  const std::vector<std::string> environment = environment_with(cluster.environment());
  int problem = 0;
  for (NodeId node = 1; node < cluster.files.size() && problem == 0; ++node) {
    const std::vector<std::string> words{program, "mojim", "copy", fmt::to_string(node),
                                         fmt::to_string(said[1])};
    pid_t process = 0;
    problem = posix_spawn(&process, program.c_str(), nullptr, nullptr, pointers(words).data(),
                          pointers(environment).data());
    if (problem == 0) processes_.push_back(process);
  }
  close(said[1]);
  const std::string why =
      problem == 0 ? why_not_serving(said[0], processes_.size(), "a node that has a copy")
                   : fmt::format("{}: {}", program, std::strerror(problem));
  close(said[0]);
  if (why.empty()) return;
  end();
  throw PlatformError(why);
}

CopyProcesses::~CopyProcesses() { end(); }

std::vector<bool> CopyProcesses::gone() const {
  std::vector<bool> gone;
  for (const pid_t process : processes_) {
    siginfo_t about{};
    waitid(P_PID, static_cast<id_t>(process), &about, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
    gone.push_back(about.si_pid == process && about.si_code != CLD_EXITED);
  }
  return gone;
}

void CopyProcesses::end() {
  for (const pid_t process : processes_) {
    kill(process, SIGKILL);  // other signals are blocked
  }
  for (const pid_t process : processes_) wait_for(process);
  processes_.clear();
}

}  // namespace perdura::preload
