// Processes for tests that kill them. The test's own process stays single-threaded and only forks,
// listens and kills; all nodes are children of it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "platform/shm/shm_platform.h"

namespace perdura::shm_test {

class Process {
 public:
  // What a child says to the test.
  class Voice {
   public:
    explicit Voice(int fd) : fd_(fd) {}
    void say(char event) const;

   private:
    int fd_;
  };
  using Body = std::function<void(const Voice&)>;

  // Runs a body in a child, which ends with 0 unless the body threw or an expectation failed there.
  explicit Process(const Body& body);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills it if nobody waited for it

  // False if it ended, or 20 seconds passed, before it said so.
  bool hears(char event) const;
  pid_t pid() const { return pid_; }
  void kill();      // SIGKILL; returns when it is dead
  int exit_code();  // waits for its end; -1 if it was killed or takes longer than 20 seconds

 private:
  pid_t pid_;
  int fd_;
};

// A job name that no other test of this machine uses; what its processes leave is removed at the
// end.
class TemporaryJob {
 public:
  TemporaryJob();
  ~TemporaryJob();
  TemporaryJob(const TemporaryJob&) = delete;
  TemporaryJob& operator=(const TemporaryJob&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// An empty directory that is removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

ShmOptions node_of(const std::string& job, NodeId node, NodeId node_count = 2);
// Runs one thread, at port 1 of the first local node.
void run_node(const ShmOptions& options, CompletionMode mode, const Platform::Body& body);
bool exists(const std::string& path);
inline std::string directory_of(const std::string& job) { return "/dev/shm/perdura-" + job; }

}  // namespace perdura::shm_test
