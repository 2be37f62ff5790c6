#include "tests/support/processes.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "platform/fabric/tcp/sockets.h"
#include "platform/shm/shm_platform.h"
#include "platform/sockets/sockets_platform.h"
#include "tests/support/leftovers.h"

namespace perdura::test {

SharedMemory::SharedMemory(std::size_t bytes)
    : bytes_(static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
             bytes) {}

SharedMemory::~SharedMemory() { munmap(bytes_.data(), bytes_.size()); }

Processes::Processes(const std::string& name, Over over)
    : over_(over), job_(job_name(name)), pool_directory_("/dev/shm/perdura-pools-" + job_) {
  if (over == Over::sockets) port_ = fabric::tcp::listen_on("127.0.0.1").port;
  remove_leftovers();
  std::filesystem::create_directories(pool_directory_);
}

Processes::~Processes() {
  kill_all();
  // The job has ended with its last process, which had no time to say so.
  std::error_code ignored;
  std::filesystem::remove_all("/dev/shm/perdura-" + job_, ignored);
  std::filesystem::remove_all(pool_directory_, ignored);
}

pid_t Processes::start(NodeId node, const Body& body) {
  return start(node, CompletionMode::polling, {body});
}

pid_t Processes::start_threads(NodeId node, const std::vector<Body>& bodies) {
  return start(node, CompletionMode::event, bodies);
}

pid_t Processes::start(NodeId node, CompletionMode mode, const std::vector<Body>& bodies) {
  const pid_t process = fork();
  if (process != 0) {
    running_.push_back(process);
    return process;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int status = 1;
  try {
    const auto platform = join(node, bodies.size());
    for (std::size_t port = 0; port < bodies.size(); ++port) {
      platform->start(node, static_cast<fabric::Port>(port), mode, bodies[port]);
    }
    platform->run();
    status = 0;
  } catch (const std::exception& error) {
    fprintf(stderr, "node %u: %s\n", node, error.what());
  }
  _exit(status);
}

std::unique_ptr<Platform> Processes::join(NodeId node, std::size_t ports) const {
  if (over_ == Over::sockets) {
    SocketsOptions options;
    options.job = job_;
    options.addresses = {{0, {.host = "127.0.0.1", .port = port_}}};
    options.node = node;
    options.ports = node == 0 ? static_cast<std::uint32_t>(ports) : 0;
    options.pm_directory = node == 0 ? pool_directory_ : "";
    options.connection_timeout = Milliseconds(200);
    return std::make_unique<SocketsPlatform>(std::move(options));
  }
  ShmOptions options;
  options.job = job_;
  options.node_count = 3;
  options.local_nodes = {node};
  options.pm_directory = pool_directory_;
  return std::make_unique<ShmPlatform>(std::move(options));
}

void Processes::kill_process(pid_t process) {
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  std::erase(running_, process);
}

void Processes::kill_all() {
  while (!running_.empty()) kill_process(running_.back());
}

}  // namespace perdura::test
