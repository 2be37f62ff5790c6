#include "tests/harness/limits/limited_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace perdura::test {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kLongest{120};
constexpr std::chrono::seconds kLongestEnd{20};  // of processes that end after the first one

std::set<std::string> mounts() {
  std::set<std::string> found;
  std::ifstream input("/proc/self/mountinfo");
  for (std::string line; std::getline(input, line);) {
    std::string place = line;
    for (int i = 0; i < 4; ++i) place.erase(0, place.find(' ') + 1);
    found.insert(place.substr(0, place.find(' ')));
  }
  return found;
}

std::set<std::string> shared_memory() {
  std::set<std::string> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/dev/shm", none)) found.insert(entry.path());
  return found;
}

std::vector<std::string> beyond(const std::set<std::string>& before,
                                const std::set<std::string>& after) {
  std::vector<std::string> more;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(more));
  return more;
}

// The process becomes the parent of those whose parents have ended, and learns of the end of each
// by a signal for which it waits.
void adopt_orphans() {
  static const bool done = [] {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, nullptr);
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  }();
  if (!done) throw std::runtime_error("cannot adopt processes");
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream input(fmt::format("/proc/self/task/{}/children", getpid()));
  for (pid_t child = 0; input >> child;) found.push_back(child);
  return found;
}

// Waits for all processes that are left, and kills those that do not end.
void end_orphans(std::vector<std::string>& left) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  const auto limit = Clock::now() + kLongestEnd;
  for (;;) {
    const pid_t one = waitpid(-1, nullptr, WNOHANG);
    if (one < 0 && errno == ECHILD) return;
    if (one > 0) continue;
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now());
    if (rest.count() <= 0) break;
    const timespec wait{rest.count() / 1000, rest.count() % 1000 * 1'000'000};
    sigtimedwait(&ended, nullptr, &wait);
  }
  for (const pid_t child : children()) {
    std::ifstream input(fmt::format("/proc/{}/cmdline", child));
    std::string words{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
    std::replace(words.begin(), words.end(), '\0', ' ');
    left.push_back(fmt::format("process {} {}", child, words));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

// In the new process. Ends it with 125 if the limit cannot be set.
[[noreturn]] void become(const Start& start, int out, int errors) {
  try {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nowhere, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    if (!start.folder.empty() && chdir(start.folder.c_str()) != 0) _exit(125);
    for (const std::string& variable : start.environment) {
      const auto equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
    }
    std::vector<std::string> words = start.words;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // Whoever runs the tests may have left descriptors open, of which a limit would leave none.
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) _exit(125);
    start.in_process();
    execv(argv[0], argv.data());
  } catch (const std::exception& problem) {
    const std::string line = fmt::format("the limit cannot be set: {}\n", problem.what());
    [[maybe_unused]] const auto written = ::write(errors, line.data(), line.size());
  }
  _exit(125);
}

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    for (const int end : ends) close(end);
  }
  // Reads what is there; false at the end.
  bool take(std::string& text) const {
    std::array<char, 4096> piece;
    for (;;) {
      const ssize_t length = read(ends[0], piece.data(), piece.size());
      if (length <= 0) return length < 0;
      text.append(piece.data(), static_cast<std::size_t>(length));
    }
  }
  void close_writer() {
    close(ends[1]);
    ends[1] = -1;
  }

  std::array<int, 2> ends{-1, -1};
};

}  // namespace

bool has_own_host() {
  static const bool has = [] {
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) return false;
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("own", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=1g") == 0;
  }();
  return has;
}

bool handles_termination(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  // By a handler, or by a thread that waits for it while all threads block it. A thread that is
  // being started may block all signals for a moment.
  for (std::string line; std::getline(status, line);) {
    const bool is_blocked = line.starts_with("SigBlk:");
    if (!is_blocked && !line.starts_with("SigCgt:")) continue;
    const std::uint64_t signals = std::stoull(line.substr(7), nullptr, 16);
    const auto has = [signals](int signal) { return (signals >> (signal - 1) & 1) != 0; };
    if (has(SIGTERM) && !(is_blocked && has(SIGWINCH))) return true;
  }
  return false;
}

Ended run(const Start& start) {
  adopt_orphans();
  const auto mounts_before = mounts();
  const auto memory_before = shared_memory();
  Ended ended;
  Pipe out;
  Pipe errors;
  const pid_t process = fork();
  if (process < 0) throw std::runtime_error("fork");
  if (process == 0) become(start, out.ends[1], errors.ends[1]);
  out.close_writer();
  errors.close_writer();
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  const auto limit = Clock::now() + kLongest;
  bool is_asked_to_end = false;
  std::array<pollfd, 3> events{
      {{descriptor, POLLIN, 0}, {out.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}}};
  while ((events[0].revents & POLLIN) == 0) {
    if (Clock::now() > limit) kill(process, SIGKILL);
    // A server that cannot print that it serves is looked at again and again.
    poll(events.data(), events.size(), start.serves && !is_asked_to_end ? 1 : 1000);
    if (!out.take(ended.out)) events[1].fd = -1;
    if (!errors.take(ended.errors)) events[2].fd = -1;
    if (start.serves && !is_asked_to_end && start.serves(process, ended.out)) {
      is_asked_to_end = true;
      kill(process, SIGTERM);
    }
  }
  int status = 0;
  waitpid(process, &status, 0);
  close(descriptor);
  out.take(ended.out);
  errors.take(ended.errors);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  start.afterwards(ended);
  if (start.beside_others) return ended;
  for (const std::string& place : beyond(mounts_before, mounts())) {
    ended.left.push_back("mounted: " + place);
    umount2(place.c_str(), MNT_DETACH);
  }
  end_orphans(ended.left);
  if (has_own_host()) {
    for (const std::string& file : beyond(memory_before, shared_memory())) {
      ended.left.push_back(file);
      fs::remove_all(file);
    }
  }
  return ended;
}

}  // namespace perdura::test
