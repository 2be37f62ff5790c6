// A cluster of real processes on shared memory that may be killed.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/error.h"
#include "platform/shm_platform.h"
#include "systems/kv.h"

namespace perdura::systems::test {

// Memory that processes forked from this one share with it.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : bytes_(static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
               bytes) {}
  ~SharedMemory() { munmap(bytes_.data(), bytes_.size()); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Each process is one of three nodes; a node may be started again when its process is dead, and
// finds its persistent memory. Node 0 is the server.
class Processes {
 public:
  Processes(std::string system, KvConfig config)
      : system_(std::move(system)),
        config_(std::move(config)),
        job_("kv-kill-" + system_ + "-" + std::to_string(getpid())),
        pool_directory_("/dev/shm/perdura-pools-" + job_) {
    std::filesystem::create_directories(pool_directory_);
  }
  ~Processes() {
    kill_all();
    std::filesystem::remove_all(pool_directory_);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  pid_t start(NodeId node, const std::function<Task<>(Thread&)>& body) {
    const pid_t process = fork();
    if (process != 0) {
      running_.push_back(process);
      return process;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = 1;
    try {
      ShmOptions options;
      options.job = job_;
      options.node_count = 3;
      options.local_nodes = {node};
      options.pm_directory = pool_directory_;
      ShmPlatform platform(std::move(options));
      platform.start(node, 0, CompletionMode::polling, body);
      platform.run();
      status = 0;
    } catch (const std::exception& error) {
      fprintf(stderr, "node %u: %s\n", node, error.what());
    }
    _exit(status);
  }
  // A server; `watch` is given its partition and runs beside it.
  pid_t start_server(const std::function<Task<>(const KvPartition&)>& watch = {}) {
    return start(0, [this, watch](Thread& thread) -> Task<> {
      const auto partition = find_kv_system(system_).open(thread, "pool", config_);
      if (watch) thread.executor.spawn(watch(*partition));
      co_await partition->serve();
    });
  }
  void kill_process(pid_t process) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    std::erase(running_, process);
  }
  void kill_all() {
    while (!running_.empty()) kill_process(running_.back());
  }

  // A session, as soon as the server is there.
  Task<std::unique_ptr<KvSession>> connect(Thread& thread) const {
    for (;;) {
      bool failed = false;
      std::unique_ptr<KvSession> session;
      try {
        session = co_await find_kv_system(system_).connect(thread, {0, 0}, config_);
      } catch (const PlatformError&) {
        failed = true;
      }
      if (!failed) co_return session;
      co_await yield();
    }
  }

 private:
  std::string system_;
  KvConfig config_;
  std::string job_;
  std::string pool_directory_;
  std::vector<pid_t> running_;
};

}  // namespace perdura::systems::test
