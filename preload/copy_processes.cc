#include "preload/copy_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include "platform/base/error.h"
#include "platform/fabric/shm/job.h"
#include "preload/execution.h"
#include "preload/program_process.h"
#include "preload/start_report.h"

namespace perdura::preload {

using pmem::mapped::File;

CopyProcesses::CopyProcesses(const Cluster& cluster, const std::string& program) {
  try {
    start(cluster, program);
  } catch (...) {
    end();
    throw;
  }
}

CopyProcesses::~CopyProcesses() { end(); }

void CopyProcesses::start(const Cluster& cluster, const std::string& program) {
  std::array<int, 2> said{};
  if (pipe(said.data()) != 0) throw PlatformError(fmt::format("pipe: {}", std::strerror(errno)));
  const File reports(said[0]);
  File ours(said[1]);
  std::array<int, 2> life{};
  if (pipe(life.data()) != 0) throw PlatformError(fmt::format("pipe: {}", std::strerror(errno)));
  const File its_end(life[0]);
  life_ = File(life[1]);
  fcntl(life_.get(), F_SETFD, FD_CLOEXEC);
  const std::vector<std::string> environment = environment_with(cluster.environment());
  processes_.reserve(cluster.files.size());
  for (NodeId node = 1; node < cluster.files.size(); ++node) {
    const std::vector<std::string> words{program,
                                         "mojim",
                                         "copy",
                                         fmt::to_string(node),
                                         fmt::to_string(ours.get()),
                                         fmt::to_string(its_end.get())};
    pid_t process = 0;
    const int problem = posix_spawn(&process, program.c_str(), nullptr, nullptr,
                                    pointers(words).data(), pointers(environment).data());
    if (problem != 0) throw PlatformError(fmt::format("{}: {}", program, std::strerror(problem)));
    processes_.push_back(process);
  }
  ours = File();
  const std::string why =
      why_not_serving(reports.get(), processes_.size(), "a node that has a copy");
  if (!why.empty()) throw PlatformError(why);
}

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
  if (processes_.empty()) return;
  for (const pid_t process : processes_) {
    kill(process, SIGKILL);  // other signals are blocked
  }
  for (const pid_t process : processes_) wait_for(process);
  processes_.clear();
  try {
    fabric::shm::remove_abandoned_jobs();
  } catch (const std::exception&) {
    // Memory or descriptors may be used up, and this is called while another error is on its way.
    // The next run removes what is left.
  }
}

}  // namespace perdura::preload
