// What the platforms of real threads share: which threads are to run on the nodes of this process,
// how they are started together, stopped, and how what they throw comes out of run(). The fabric
// behind a thread's endpoint, and how processes learn of each other, are the derived platform's.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
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

  void start(NodeId node, fabric::Port port, CompletionMode mode, Body body) override;
  void start_service(NodeId node, fabric::Port port, CompletionMode mode, Body body) override;

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
  void add_node(std::unique_ptr<HostNode> node) { nodes_.push_back(std::move(node)); }
  HostNode* host_node(NodeId id);
  // For destructors: nodes may stand on what the derived platform holds.
  void drop_nodes() { nodes_.clear(); }

  using RunThread = std::function<void(runtime::ThreadExecutor&, fabric::Endpoint&)>;
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
  struct PlannedThread {
    HostNode* node;
    fabric::Port port;
    CompletionMode mode;
    Body body;
    bool service;
    std::vector<unsigned> cores;  // to be pinned to; empty: anywhere
  };

  void plan(NodeId node, fabric::Port port, CompletionMode mode, Body body, bool service);
  std::vector<unsigned> cores_for_next_thread(const HostNode& node) const;
  void run_thread(const PlannedThread& planned);
  void run_on(const PlannedThread& planned, ThreadUse& use, runtime::ThreadExecutor& executor,
              fabric::Endpoint& endpoint);
  Task<> run_body(const PlannedThread& planned, Thread& thread);
  void thread_ended();
  void stop_threads();

  NodeId node_count_;
  std::vector<NodeId> local_ids_;
  pmem::WriteMeter::Level accounting_;
  std::vector<std::unique_ptr<HostNode>> nodes_;

  std::deque<PlannedThread> planned_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t unfinished_ = 0;  // started threads whose body has not ended
  std::size_t not_ready_ = 0;   // threads that have not got an endpoint yet
  std::vector<runtime::ThreadExecutor*> executors_;
  std::exception_ptr error_;
  bool stopping_ = false;
};

}  // namespace perdura
