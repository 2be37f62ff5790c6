// The file system of a test, "home", on a platform: on node 0 itself, or, if the system has
// an FsCluster, on the servers of its small file system, with the test's threads on the nodes after
// them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "platform/platform.h"
#include "services/fs/fs.h"

namespace perdura::fs::test {

inline NodeId servers_of(const FsSystem& system) {
  return system.cluster == nullptr ? 0 : static_cast<NodeId>(system.cluster->small.size());
}
// Nodes that a test needs which uses the file system on `clients` of them.
inline NodeId nodes_for(const FsSystem& system, NodeId clients) {
  return servers_of(system) + clients;
}

// The persistent memory of the nodes must be empty, or be that of an earlier Home with the same
// configuration (`exists`).
class Home {
 public:
  Home(const FsSystem& system, FsConfig config) : system_(system), config_(std::move(config)) {
    if (system.cluster == nullptr) return;
    config_.servers.assign(system.cluster->small.begin(), system.cluster->small.end());
    for (NodeId node = 0; node < servers_of(system); ++node) {
      servers_.push_back(std::make_unique<Server>());
    }
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  const FsSystem& system() const { return system_; }
  const FsConfig& config() const { return config_; }
  bool has_servers() const { return !servers_.empty(); }
  // The node of a client, counted from 0.
  NodeId client(NodeId number) const { return servers_of(system_) + number; }

  // Starts the threads of the servers, if there are any. After a failure it must be called again.
  void start(Platform& platform) {
    for (NodeId node = 0; node < servers_.size(); ++node) start(platform, node);
  }
  // The threads of one server.
  void start(Platform& platform, NodeId node) {
    servers_[node]->is_open = false;
    const std::uint32_t workers = system_.cluster->workers(config_, node);
    for (std::uint32_t port = 0; port < workers; ++port) {
      platform.start_service(node, static_cast<fabric::Port>(port), CompletionMode::polling,
                             [this](Thread& thread) { return serve(thread); });
    }
  }

  // Makes it, and waits until it can be mounted. To be called once, by one of the test's threads.
  Task<> make(Thread& thread, Timestamp now) {
    config_.now = now;
    if (!has_servers()) co_return co_await system_.make(thread, "home", config_);
    is_asked_for_ = true;
    co_await wait();
  }
  // Waits until all servers have opened it.
  Task<> wait() {
    while (!std::all_of(servers_.begin(), servers_.end(),
                        [](const auto& server) { return server->is_open.load(); })) {
      co_await sleep_for(kLook);
    }
  }
  // Servers may refuse it for a while, because they have not learned yet that an earlier client is
  // gone.
  Task<std::shared_ptr<FileSystem>> mount(Thread& thread) {
    constexpr int kAttempts = 1000;
    for (int attempt = 1;; ++attempt) {
      try {
        co_return co_await system_.mount(thread, "home", config_);
      } catch (const PlatformError&) {
        if (!has_servers() || attempt == kAttempts) throw;
      }
      co_await sleep_for(kLook);
    }
  }

  // Returns the contradictions that the servers find. Nobody may use the file system meanwhile.
  Task<std::string> audit() {
    co_await ask();
    std::string all;
    for (const auto& server : servers_) all += server->contradiction;
    co_return all;
  }
  Task<std::vector<std::uint64_t>> events() {
    co_await ask();
    std::vector<std::uint64_t> all(system_.events.size());
    for (const auto& server : servers_) add(server->events, all);
    co_return all;
  }
  static void add(const std::vector<std::uint64_t>& events, std::vector<std::uint64_t>& sums) {
    if (sums.size() < events.size()) sums.resize(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) sums[i] += events[i];
  }

 private:
  static constexpr Picoseconds kLook = Microseconds(20);

  struct Server {
    std::shared_ptr<FsServer> part;  // as long as its process lives
    bool is_made = false;
    std::atomic<bool> is_open{false};
    // Questions that it has answered, and the last answer.
    std::atomic<std::uint64_t> answered{0};
    std::string contradiction;
    std::vector<std::uint64_t> events;
  };

  // Closes it with the process.
  struct Open {
    Server& server;
    ~Open() {
      server.is_open = false;
      server.part.reset();
    }
  };

  Task<> serve(Thread& thread) {
    Server& server = *servers_[thread.node.id()];
    if (thread.endpoint.address().port > 0) {
      while (!server.is_open) co_await sleep_for(kLook);
      const std::shared_ptr<FsServer> part = server.part;
      co_return co_await part->serve(thread);
    }
    while (!is_asked_for_) co_await sleep_for(kLook);
    if (!std::exchange(server.is_made, true)) co_await system_.make(thread, "home", config_);
    const Open open{server};
    server.part = co_await system_.cluster->open(thread, "home", config_);
    EXPECT_EQ(server.part->damage(), "");
    co_await yield();  // the thread is ahead of simulated time
    server.is_open = true;
    thread.executor.spawn(answer(server));
    co_await server.part->serve(thread);
  }
  // The thread of a server asks it.
  Task<> answer(Server& server) {
    for (;;) {
      while (server.answered == asked_) co_await sleep_for(kLook);
      server.contradiction = co_await server.part->audit();
      server.events = server.part->events();
      server.answered = asked_.load();
    }
  }
  Task<> ask() {
    ++asked_;
    while (!std::all_of(servers_.begin(), servers_.end(),
                        [this](const auto& server) { return server->answered == asked_; })) {
      co_await sleep_for(kLook);
    }
  }

  const FsSystem& system_;
  FsConfig config_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::atomic<bool> is_asked_for_{false};
  std::atomic<std::uint64_t> asked_{0};
};

}  // namespace perdura::fs::test
