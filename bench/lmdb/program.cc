#include "bench/lmdb/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "harness/run/interrupt.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"

namespace perdura::bench::lmdb {

namespace fs = std::filesystem;

namespace {

constexpr auto kLook = std::chrono::milliseconds(50);  // interval of checks for an interrupt

[[noreturn]] void fail(std::string_view what) {
  throw PlatformError(fmt::format("{}: {}", what, std::strerror(errno)));
}

std::pair<int, int> new_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  return {ends[0], ends[1]};
}

fs::path output_in(const fs::path& folder) { return folder / "output"; }
fs::path complaints_in(const fs::path& folder) { return folder / "complaints"; }

// The process group of a process; 0 if the process no longer exists.
pid_t group_of(const fs::path& process) {
  const std::string stat = harness::read_whole(process / "stat").value_or("");
  const std::size_t behind_name = stat.rfind(')');
  if (behind_name == std::string::npos) return 0;
  std::istringstream fields(stat.substr(behind_name + 1));
  std::string state;
  pid_t parent = 0;
  pid_t group = 0;
  fields >> state >> parent >> group;
  return group;
}

Picoseconds cpu_time_of(const fs::path& process) {
  std::int64_t nanoseconds = 0;
  std::error_code error;
  for (const auto& thread : fs::directory_iterator(process / "task", error)) {
    std::ifstream schedule(thread.path() / "schedstat");
    std::int64_t own = 0;
    if (schedule >> own) nanoseconds += own;
  }
  return Nanoseconds(nanoseconds);
}

}  // namespace

Program::Program(const Arguments& arguments, const fs::path& folder) : folder_(folder) {
  const auto [results, results_of_child] = new_pipe();
  const auto [answers_for_child, answers] = new_pipe();
  results_ = results;
  answers_ = answers;
  // Everything that may allocate comes before the fork, since other threads of this process may
  // hold locks.
  const std::vector<std::string> given = arguments(results_of_child, answers_for_child);
  std::vector<char*> pointers;
  for (const std::string& argument : given) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const int output =
      open(output_in(folder).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const int complaints =
      open(complaints_in(folder).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (output < 0 || complaints < 0) fail(folder.string());
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    dup2(complaints, STDERR_FILENO);
    fcntl(results_of_child, F_SETFD, 0);
    fcntl(answers_for_child, F_SETFD, 0);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  const int problem = errno;
  for (const int descriptor : {results_of_child, answers_for_child, output, complaints})
    close(descriptor);
  errno = problem;
  if (process_ < 0) fail("fork");
  setpgid(process_, process_);  // both processes do this, since either may be first
}

Program::~Program() {
  if (process_ > 0) {
    kill(-process_, SIGKILL);
    if (!ended_) waitpid(process_, nullptr, 0);
  }
  close(results_);
  close(answers_);
}

bool Program::read(std::span<std::byte> into) {
  while (!into.empty()) {
    pollfd waited{.fd = results_, .events = POLLIN, .revents = 0};
    const int ready = poll(&waited, 1, static_cast<int>(kLook.count()));
    if (harness::interrupted()) return false;
    if (ready <= 0) continue;
    const ssize_t length = ::read(results_, into.data(), into.size());
    if (length == 0) return false;
    if (length < 0 && errno != EINTR) fail("read");
    if (length > 0) into = into.subspan(static_cast<std::size_t>(length));
  }
  return true;
}

void Program::answer(char what) {
  // If the program has ended, nobody hears this; read() will tell.
  if (write(answers_, &what, 1) != 1) return;
}

Program::CpuTime Program::cpu_time(std::string_view of) const {
  CpuTime all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (group_of(entry.path()) != process_) continue;
    std::string command = harness::read_whole(entry.path() / "cmdline").value_or("");
    std::replace(command.begin(), command.end(), '\0', ' ');
    (command.find(of) != std::string::npos ? all.with : all.without) += cpu_time_of(entry.path());
  }
  return all;
}

int Program::wait() {
  while (!ended_) {
    int status = 0;
    const pid_t found = waitpid(process_, &status, WNOHANG);
    if (found == process_) {
      ended_ = true;
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (harness::interrupted()) {
      return -1;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return exit_code_;
}

std::string Program::output() const { return harness::read_whole(output_in(folder_)).value_or(""); }

std::string Program::complaint() const {
  std::istringstream complaints(harness::read_whole(complaints_in(folder_)).value_or(""));
  std::string last;
  for (std::string line; std::getline(complaints, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace perdura::bench::lmdb
