#include "preload/program_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "preload/call_filter.h"
#include "preload/execution.h"

namespace perdura::preload {

namespace fs = std::filesystem;

namespace {

// Sent by the new process to its parent: a step on its way to become the program, and its outcome.
struct Report {
  enum Step : int { filtered, executed } step = filtered;
  int error = 0;  // an errno
};

// Signals that arrive now are the program's: they must not reach the handlers of this process.
void forget_handlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction found {};
    if (sigaction(signal, nullptr, &found) != 0 || found.sa_handler == SIG_IGN) continue;
    found = {};
    sigaction(signal, &found, nullptr);
  }
}

[[noreturn]] void become(const std::vector<char*>& command, const std::vector<char*>& environment,
                         CallFilter& filter, int socket, int reports, const sigset_t& signals) {
  forget_handlers();
  const auto report = [&](Report::Step step, int error) {
    const Report one{step, error};
    [[maybe_unused]] const auto written = write(reports, &one, sizeof one);
  };
  report(Report::filtered, filter.begin(socket));
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvpe(command[0], command.data(), environment.data());
  report(Report::executed, errno);
  _exit(127);
}

}  // namespace

ProgramProcess::ProgramProcess(const std::vector<std::string>& command,
                               const std::vector<std::string>& environment, int socket) {
  CallFilter filter;
  const std::vector<char*> words = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  std::array<int, 2> reports{};
  if (pipe2(reports.data(), O_CLOEXEC) != 0) {
    throw PlatformError(fmt::format("pipe: {}", std::strerror(errno)));
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  process_ = fork();
  if (process_ == 0) become(words, variables, filter, socket, reports[1], before);
  const int problem = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(reports[1]);
  Report report;
  int not_executed = 0;
  const auto receive = [&] {
    ssize_t length = 0;
    do {
      length = read(reports[0], &report, sizeof report);
    } while (length < 0 && errno == EINTR);
    return length == static_cast<ssize_t>(sizeof report);
  };
  while (process_ > 0 && receive()) {
    if (report.error == 0) continue;
    if (report.step == Report::executed) not_executed = report.error;
    if (report.step == Report::filtered) why_unwatched_ = std::strerror(report.error);
  }
  close(reports[0]);
  if (process_ < 0) {
    throw PlatformError(
        fmt::format("{}: cannot be started: {}", command[0], std::strerror(problem)));
  }
  if (not_executed == 0) return;
  wait_for(process_);
  throw UsageError(fmt::format("{}: {}", command[0], std::strerror(not_executed)));
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::vector<pid_t> ProgramProcess::children(const std::vector<pid_t>& others) {
  const pid_t self = getpid();
  std::vector<pid_t> children;
  for (const fs::path& folder : names_in("/proc")) {
    const pid_t id = std::atoi(folder.filename().c_str());
    if (id <= 0 || std::find(others.begin(), others.end(), id) != others.end()) continue;
    std::ifstream stat(folder / "stat");
    const std::string text((std::istreambuf_iterator<char>(stat)), {});
    const std::size_t end = text.rfind(") ");  // the end of the name
    if (end == std::string::npos) continue;
    if (std::atoi(text.c_str() + end + 4) == self) children.push_back(id);
  }
  return children;
}

}  // namespace perdura::preload
