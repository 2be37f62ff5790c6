// A cluster of real processes that may be killed: on shared memory, or over the host's sockets.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.h"

namespace perdura::test {

// Memory that processes forked from this one share with it.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Each process is one of three nodes; a node may be started again when its process is dead, and
// finds its persistent memory. Node 0 is the server. The destructor kills the processes that are
// still alive.
class Processes {
 public:
  enum class Over : std::uint8_t { shared_memory, sockets };
  explicit Processes(const std::string& name, Over over = Over::shared_memory);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  using Body = std::function<Task<>(Thread&)>;
  pid_t start(NodeId node, const Body& body);
  // Starts a thread for each body, at ports 0, 1, 2, and so on. Idle threads sleep, so there may be
  // more threads than cores.
  pid_t start_threads(NodeId node, const std::vector<Body>& bodies);
  void kill_process(pid_t process);
  void kill_all();

 private:
  pid_t start(NodeId node, CompletionMode mode, const std::vector<Body>& bodies);
  std::unique_ptr<Platform> join(NodeId node, std::size_t ports) const;

  Over over_;
  std::uint16_t port_ = 0;  // over sockets: where node 0 listens
  std::string job_;
  std::string pool_directory_;
  std::vector<pid_t> running_;
};

}  // namespace perdura::test
