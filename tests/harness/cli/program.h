// The program itself, as a process: run to its end, or killed on its way.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace perdura {

// One point, or two, on the simulated testbed, small enough for a test.
inline const std::string kOnePoint =
    "run erda-latency --set workload.operations=300 --set workload.warmup=0 "
    "--set 'matrix.workload=[\"workloada\"]' --set 'matrix.value_size=[16]' "
    "--set 'matrix.system=[\"erda\"]' ";
inline const std::string kTwoPoints =
    "run erda-latency --set workload.operations=300 --set workload.warmup=0 "
    "--set 'matrix.workload=[\"workloada\"]' --set 'matrix.value_size=[16, 64]' "
    "--set 'matrix.system=[\"erda\"]' ";

struct Outcome {
  int code = -1;
  std::string text;  // of stdout and stderr together
};

inline Outcome shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.text.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

inline std::string perdura_command(const std::string& arguments) {
  return fmt::format("{} {}", PERDURA_PROGRAM, arguments);
}

// Open MPI does not free everything at its end, and takes its locks in two orders.
inline std::string mpirun_command(int ranks, const std::string& arguments) {
  return fmt::format(
      "env ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=detect_deadlocks=0 {} "
      "--allow-run-as-root --oversubscribe --bind-to none -n {} {} {}",
      PERDURA_MPIRUN, ranks, PERDURA_PROGRAM, arguments);
}

inline Outcome perdura(const std::string& arguments) { return shell(perdura_command(arguments)); }

inline Outcome mpirun(int ranks, const std::string& arguments) {
  return shell(mpirun_command(ranks, arguments));
}

inline std::string read(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::stringstream text;
  text << input.rdbuf();
  return text.str();
}

// A command that runs while the test goes on; stdout and stderr go to a file.
class Running {
 public:
  Running(const std::string& command, const std::filesystem::path& log) {
    // It may be killed before it makes a file of its own.
    std::filesystem::remove(log);
    process_ = fork();
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl("/bin/sh", "sh", "-c", fmt::format("exec {} > {} 2>&1", command, log.string()).c_str(),
          nullptr);
    _exit(127);
  }
  ~Running() {
    if (process_ > 0) kill();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Whether it ends by itself before the time is over.
  bool ends_within(std::chrono::milliseconds time) const {
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process_, 0));
    pollfd ended{descriptor, POLLIN, 0};
    const bool yes = poll(&ended, 1, static_cast<int>(time.count())) == 1;
    close(descriptor);
    return yes;
  }
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void signal(int signal) const { ::kill(process_, signal); }
  // By SIGKILL.
  void kill() {
    ::kill(process_, SIGKILL);
    wait();
  }
  // Kills the ranks that this mpirun started, and waits for its own end.
  void kill_ranks() {
    const std::vector<pid_t> ranks = children();
    for (const pid_t rank : ranks) ::kill(rank, SIGKILL);
    end_with_its_ranks(std::chrono::minutes(5), !ranks.empty());
    wait();
  }
  // Whether this mpirun and its ranks end before the time is over.
  bool ranks_end_within(std::chrono::milliseconds time) const {
    return end_with_its_ranks(time, !children().empty());
  }
  // Of those, the one with a rank of mpirun's; 0 if there is none.
  pid_t rank(int rank) const {
    const std::string variable = fmt::format("OMPI_COMM_WORLD_RANK={}", rank);
    for (const pid_t child : children()) {
      std::ifstream input(fmt::format("/proc/{}/environ", child));
      for (std::string entry; std::getline(input, entry, '\0');) {
        if (entry == variable) return child;
      }
    }
    return 0;
  }

 private:
  // That have not ended.
  std::vector<pid_t> children() const {
    std::ifstream input(fmt::format("/proc/{}/task/{}/children", process_, process_));
    std::vector<pid_t> children;
    for (pid_t child = 0; input >> child;) {
      // One that has ended and was not waited for has no command line.
      if (!read(fmt::format("/proc/{}/cmdline", child)).empty()) children.push_back(child);
    }
    return children;
  }
  // Once in some dozens of aborts Open MPI 4.1 does not end though all ranks have:
  // PMIx_server_finalize waits for a lock that its stopped progress thread held. Then it is killed,
  // ten seconds after them.
  bool end_with_its_ranks(std::chrono::milliseconds time, bool started) const {
    constexpr std::chrono::seconds kOwnEnd(10);
    const auto now = [] { return std::chrono::steady_clock::now(); };
    const auto limit = now() + time;
    for (auto alive = now(); now() < limit;) {
      if (ends_within(std::chrono::milliseconds(20))) return true;
      const bool any = !children().empty();
      started = started || any;
      if (any || !started) alive = now();
      if (now() - alive > kOwnEnd) ::kill(process_, SIGKILL);
    }
    return false;
  }

  pid_t process_ = 0;
};

}  // namespace perdura
