#include "tests/platform/shm/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "tests/support/leftovers.h"

namespace perdura::shm_test {
namespace {

using std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(20);

}  // namespace

void Process::Voice::say(char event) const {
  if (::write(fd_, &event, 1) != 1) throw std::runtime_error("the test does not listen");
}

Process::Process(const Body& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ends[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 0;
    try {
      body(Voice(ends[1]));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      code = 1;
    }
    if (testing::Test::HasFailure()) code = 2;
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(ends[1]);
  fd_ = ends[0];
}

Process::~Process() {
  if (pid_ > 0) kill();
  ::close(fd_);
}

bool Process::hears(char event) const {
  const auto end = steady_clock::now() + kPatience;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - steady_clock::now()).count();
    pollfd ready{fd_, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
    char heard = 0;
    if (::read(fd_, &heard, 1) != 1) return false;
    if (heard == event) return true;
  }
}

void Process::kill() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int Process::exit_code() {
  const auto end = steady_clock::now() + kPatience;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid_, &status, WNOHANG)) == 0 && steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (ended != pid_) {
    kill();
    return -1;
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TemporaryJob::TemporaryJob() {
  static std::atomic<int> next{0};
  test::remove_leftovers();
  name_ = test::job_name(std::to_string(next.fetch_add(1)));
}

TemporaryJob::~TemporaryJob() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_of(name_), ignored);
}

TemporaryDirectory::TemporaryDirectory()
    : path_("/dev/shm/perdura-pools-" + test::job_name("XXXXXX")) {
  test::remove_leftovers();
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary directory");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ShmOptions node_of(const std::string& job, NodeId node, NodeId node_count) {
  ShmOptions options;
  options.job = job;
  options.node_count = node_count;
  options.local_nodes = {node};
  return options;
}

void run_node(const ShmOptions& options, CompletionMode mode, const Platform::Body& body) {
  ShmPlatform platform(options);
  platform.start(options.local_nodes.front(), 1, mode, body);
  platform.run();
}

bool exists(const std::string& path) { return std::filesystem::exists(path); }

}  // namespace perdura::shm_test
