// What the platforms of real threads share: which threads are to run on the nodes of this process,
// how they are started and stopped, and how what they throw comes out of run(). The fabric
// behind a thread's endpoint, and how processes learn of each other, are the derived platform's.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "platform/host/host_node.h"
#include "platform/host/thread_executor.h"
#include "platform/platform.h"

namespace perdura {

class HostPlatform : public Platform {
 public:
  bool modelled() const override { return false; }
  NodeId node_count() const override { return node_count_; }
  Node* local_node(NodeId id) override { return host_node(id); }

  std::shared_ptr<StartedThread> start(NodeId node, fabric::Port port, CompletionMode mode,
                                       Body body) override;
  std::shared_ptr<StartedThread> start_service(NodeId node, fabric::Port port, CompletionMode mode,
                                               Body body) override;

  // Returns when the threads started on all nodes have ended; a node whose process died counts as
  // ended. May be called again, with new threads, as often in every process. If a task throws, the
  // threads of this process are stopped and barriers that other processes wait at throw
  // PlatformError there.
  void run() override;

 protected:
  // `local_nodes` empty: all of them.
  HostPlatform(NodeId node_count, std::vector<NodeId> local_nodes,
               pmem::WriteMeter::Level accounting);

  // The n-th of the local ids.
  const std::vector<NodeId>& local_ids() const { return local_ids_; }
  void add_node(std::unique_ptr<HostNode> node);
  HostNode* host_node(NodeId id);
  // For destructors: nodes may stand on what the derived platform holds.
  void drop_nodes() { nodes_.clear(); }

  // Makes the executor and the endpoint of a thread, on that thread, and calls `run` with them; the
  // endpoint is among the executor's pollers.
  virtual void with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                             const RunThread& run) = 0;
  // The bodies of the local nodes' threads have ended, or one has failed: tells the other processes
  // and, unless it has failed, waits for theirs; what spawned tasks serve still runs. Looks at
  // stopping() while it waits.
  virtual void meet_other_nodes(bool failed) = 0;

  bool stopping();
  // Stops the threads of the run, which rethrows the error.
  void fail(std::exception_ptr error);

 private:
  struct HostThread final : StartedThread {
    HostThread(HostPlatform& of, HostNode& on, fabric::Port at, CompletionMode how, Body what,
               bool never_ends)
        : platform(of), node(on), port(at), mode(how), body(std::move(what)), service(never_ends) {}
    void stop() override { platform.stop(*this); }

    HostPlatform& platform;
    HostNode& node;
    const fabric::Port port;
    const CompletionMode mode;
    const Body body;
    const bool service;
    // What follows is protected by the platform's mutex.
    std::vector<unsigned> cores{};                // to be pinned to; empty: anywhere
    bool begins_with_others = false;              // and not at once
    bool awaited = false;                         // by the end of the run
    bool stopped = false;                         // by stop()
    runtime::ThreadExecutor* executor = nullptr;  // while it runs
    std::thread os_thread{};                      // whoever takes it joins it
    std::thread::id id{};                         // its own until it has ended
    bool ended = true;                            // nothing of it uses the platform
  };

  std::shared_ptr<StartedThread> plan(NodeId node, fabric::Port port, CompletionMode mode,
                                      Body body, bool service);
  // These three with the mutex locked.
  std::vector<unsigned> least_used_core(const HostNode& node) const;
  void launch(const std::shared_ptr<HostThread>& thread);
  void await_no_longer(HostThread& thread);
  void run_thread(HostThread& thread);
  void run_on(HostThread& thread, ThreadUse& use, runtime::ThreadExecutor& executor,
              fabric::Endpoint& endpoint);
  Task<> run_body(HostThread& started, Thread& thread);
  void stop(HostThread& thread);
  void stop_threads();
  void join_threads();

  NodeId node_count_;
  std::vector<NodeId> local_ids_;
  pmem::WriteMeter::Level accounting_;
  std::vector<std::unique_ptr<HostNode>> nodes_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<HostThread>> threads_;  // of this run, or of the next
  std::size_t awaited_ = 0;
  std::size_t not_ready_ = 0;  // those that begin together and have not got an endpoint yet
  std::exception_ptr error_;
  bool running_ = false;
  bool stopping_ = false;
};

}  // namespace perdura
