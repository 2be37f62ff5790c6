// The common base of the platforms with real threads: it starts and stops the threads of this
// process's nodes, and rethrows their exceptions from run(). The derived platform provides the
// fabric of a thread's endpoint and the coordination between processes.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "platform/host/host_node.h"
#include "platform/host/os_thread.h"
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

  // Returns when the threads started on all nodes of the cluster have ended; a node whose process
  // died counts as ended. May be called again with new threads, equally often in every process. If
  // a task throws, the threads of this process are stopped, and barriers at which other processes
  // wait throw PlatformError there.
  void run() override;

 protected:
  // `local_nodes`: the nodes of this process; empty means all nodes.
  HostPlatform(NodeId node_count, std::vector<NodeId> local_nodes,
               pmem::WriteMeter::Level accounting);

  // The ids of the nodes of this process.
  const std::vector<NodeId>& local_ids() const { return local_ids_; }
  void add_node(std::unique_ptr<HostNode> node);
  HostNode* host_node(NodeId id);
  // For destructors of derived platforms, since nodes may refer to members of the derived class.
  void drop_nodes() { nodes_.clear(); }

  // Called on a new thread: creates its executor and its endpoint, which is one of the executor's
  // pollers, and calls `run` with them.
  virtual void with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                             const RunThread& run) = 0;
  // Called when the bodies of the local nodes' threads have ended or one has failed. Reports that
  // to the other processes and, unless `failed`, waits until the threads of their nodes have ended,
  // too; services and spawned tasks still run meanwhile. While it waits it checks stopping().
  virtual void meet_other_nodes(bool failed) = 0;

  bool stopping();
  // Stops the threads of the run; run() then rethrows the error.
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
    // The members below are protected by the platform's mutex.
    std::vector<unsigned> cores{};             // the cores to which it is pinned; empty: any
    bool begins_with_others = false;           // waits until all threads of the run can begin
    bool awaited = false;                      // the run does not end before it
    bool stopped = false;                      // stop() was called
    host::ThreadExecutor* executor = nullptr;  // while it runs
    OsThread os_thread{};                      // whoever moves it out joins it
    std::thread::id id{};                      // the id of os_thread, until the thread has ended
    bool ended = true;                         // it no longer uses the platform
  };

  std::shared_ptr<StartedThread> plan(NodeId node, fabric::Port port, CompletionMode mode,
                                      Body body, bool service);
  // The next three functions are called with the mutex locked.
  std::vector<unsigned> least_used_core(const HostNode& node) const;
  // Throws PlatformError if the system refuses another thread; `thread` has then ended.
  void launch(const std::shared_ptr<HostThread>& thread);
  void await_no_longer(HostThread& thread);
  void run_thread(HostThread& thread);
  void run_on(HostThread& thread, ThreadUse& use, host::ThreadExecutor& executor,
              fabric::Endpoint& endpoint);
  Task<> run_body(HostThread& started, Thread& thread);
  void stop(HostThread& thread);
  void fail_locked(std::exception_ptr error);
  void stop_threads();
  void stop_threads_locked();
  void join_threads();

  NodeId node_count_;
  std::vector<NodeId> local_ids_;
  pmem::WriteMeter::Level accounting_;
  std::vector<std::unique_ptr<HostNode>> nodes_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Threads of this run or, before run(), of the next one.
  std::vector<std::shared_ptr<HostThread>> threads_;
  std::size_t awaited_ = 0;
  std::size_t not_ready_ = 0;  // threads that begin together and have no endpoint yet
  std::exception_ptr error_;
  bool running_ = false;
  bool stopping_ = false;
};

}  // namespace perdura
