// Processes for tests of the library's log, which kill them, and where their log is. What a test
// leaves is removed by itself or, if it is killed, by the next one.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "perdura.h"
#include "tests/support/leftovers.h"

namespace perdura::library_test {

// A job of its own, and a directory for the server's memory, on the tmpfs.
class TemporaryJob {
 public:
  TemporaryJob() {
    static std::atomic<int> next{0};
    test::remove_leftovers();
    options_.job = test::job_name("library") + "-" + std::to_string(next++);
    options_.directory = "/dev/shm/perdura-pools-" + options_.job;
    options_.emulated = true;
    options_.records = 64;
    std::filesystem::create_directories(options_.directory);
  }
  ~TemporaryJob() {
    std::error_code ignored;
    std::filesystem::remove_all(options_.directory, ignored);
    std::filesystem::remove_all("/dev/shm/perdura-" + options_.job, ignored);
  }
  TemporaryJob(const TemporaryJob&) = delete;
  TemporaryJob& operator=(const TemporaryJob&) = delete;
  const LogOptions& options() const { return options_; }
  LogOptions with(const Configuration& configuration) const {
    LogOptions result = options_;
    result.configuration = configuration;
    return result;
  }

 private:
  LogOptions options_;
};

// Memory that processes forked from this one share with it; starts as zeros.
template <class T>
class Shared {
 public:
  Shared()
      : object_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) T) {}
  ~Shared() { munmap(object_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return object_; }

 private:
  T* object_;
};

// A process that is killed, or waited for, at the end.
class Child {
 public:
  Child() = default;
  template <class Body>
  explicit Child(const Body& body) : process_(fork()) {
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 0;
    try {
      body();
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
      code = 1;
    }
    _exit(code);
  }
  Child(Child&& other) noexcept : process_(std::exchange(other.process_, 0)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(process_, other.process_);
    return *this;
  }
  ~Child() { end(); }

  // When it returns, none of its threads runs.
  void stand_still() const {
    kill(process_, SIGSTOP);
    waitpid(process_, nullptr, WUNTRACED);
  }
  void go_on() const { kill(process_, SIGCONT); }
  bool runs() {
    if (process_ <= 0 || waitpid(process_, nullptr, WNOHANG) == 0) return process_ > 0;
    process_ = 0;
    return false;
  }
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    wait();
  }
  // Its exit code; -1 if it was killed.
  int wait() {
    int status = 0;
    waitpid(std::exchange(process_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = 0;
};

}  // namespace perdura::library_test
