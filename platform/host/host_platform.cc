#include "platform/host/host_platform.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "platform/base/error.h"
#include "platform/host/numa.h"

namespace perdura {

using runtime::ThreadExecutor;

HostPlatform::HostPlatform(NodeId node_count, std::vector<NodeId> local_nodes,
                           pmem::WriteMeter::Level accounting)
    : node_count_(node_count), local_ids_(std::move(local_nodes)), accounting_(accounting) {
  if (!local_ids_.empty()) return;
  local_ids_.resize(node_count);
  std::iota(local_ids_.begin(), local_ids_.end(), NodeId{0});
}

HostNode* HostPlatform::host_node(NodeId id) {
  const auto found = std::find(local_ids_.begin(), local_ids_.end(), id);
  if (found == local_ids_.end()) return nullptr;
  return nodes_[static_cast<std::size_t>(found - local_ids_.begin())].get();
}

void HostPlatform::start(NodeId node, fabric::Port port, CompletionMode mode, Body body) {
  plan(node, port, mode, std::move(body), false);
}

void HostPlatform::start_service(NodeId node, fabric::Port port, CompletionMode mode, Body body) {
  plan(node, port, mode, std::move(body), true);
}

void HostPlatform::plan(NodeId node, fabric::Port port, CompletionMode mode, Body body,
                        bool service) {
  HostNode* local = host_node(node);
  if (local == nullptr) {
    throw UsageError(
        fmt::format("a thread was started on node {}, which is not in this process", node));
  }
  planned_.push_back({local, port, mode, std::move(body), service, cores_for_next_thread(*local)});
}

std::vector<unsigned> HostPlatform::cores_for_next_thread(const HostNode& node) const {
  const std::vector<unsigned>& cores = node.placement().cores;
  if (cores.empty()) return {};
  const auto before = static_cast<std::size_t>(std::count_if(
      planned_.begin(), planned_.end(), [&](const auto& t) { return t.node == &node; }));
  return {cores[before % cores.size()]};
}

void HostPlatform::run() {
  // Threads that were started belong to this run, even if it fails.
  const std::deque<PlannedThread> threads = std::exchange(planned_, {});
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = false;
    error_ = nullptr;
    not_ready_ = threads.size();
    unfinished_ = static_cast<std::size_t>(std::count_if(
        threads.begin(), threads.end(), [](const PlannedThread& t) { return !t.service; }));
  }
  std::vector<std::thread> running;
  running.reserve(threads.size());
  for (const PlannedThread& planned : threads) {
    running.emplace_back([this, &planned] { run_thread(planned); });
  }
  bool failed;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return unfinished_ == 0 || stopping_; });
    failed = error_ != nullptr;
  }
  meet_other_nodes(failed);
  stop_threads();
  for (std::thread& thread : running) thread.join();
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void HostPlatform::run_thread(const PlannedThread& planned) {
  ThreadUse& use = planned.node->add_thread();
  use.begin();
  pmem::thread_write_meter().set_level(accounting_);
  try {
    if (!pin_this_thread(planned.cores)) {
      throw UsageError(fmt::format(
          "node {}: a thread cannot be pinned to core {}, which this process may not use",
          planned.node->id(), planned.cores.front()));
    }
    // Background threads are started by this one, and so are bound, too.
    const MemoryBinding binding(planned.node->placement().numa_node);
    with_endpoint(*planned.node, planned.port, planned.mode,
                  [&](ThreadExecutor& executor, fabric::Endpoint& endpoint) {
                    run_on(planned, use, executor, endpoint);
                  });
  } catch (...) {
    fail(std::current_exception());
  }
  use.end();
}

void HostPlatform::run_on(const PlannedThread& planned, ThreadUse& use, ThreadExecutor& executor,
                          fabric::Endpoint& endpoint) {
  WritesPublisher publisher(use);
  executor.add_poller(publisher);
  Thread thread{*planned.node, executor, endpoint};
  bool go;
  {
    std::unique_lock lock(mutex_);
    executors_.push_back(&executor);
    --not_ready_;
    changed_.notify_all();
    // All at once: nobody measures the start of the others.
    changed_.wait(lock, [this] { return not_ready_ == 0 || stopping_; });
    go = !stopping_;
  }
  if (go) {
    executor.spawn(run_body(planned, thread));
    executor.run();
  }
  const std::scoped_lock lock(mutex_);
  std::erase(executors_, &executor);
}

Task<> HostPlatform::run_body(const PlannedThread& planned, Thread& thread) {
  co_await planned.body(thread);
  if (planned.service) co_return;
  // What the body spawned goes on until everybody has ended, without burning a core.
  static_cast<ThreadExecutor&>(thread.executor).set_mode(CompletionMode::event);
  thread_ended();
}

void HostPlatform::thread_ended() {
  const std::scoped_lock lock(mutex_);
  --unfinished_;
  changed_.notify_all();
}

bool HostPlatform::stopping() {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

void HostPlatform::fail(std::exception_ptr error) {
  {
    const std::scoped_lock lock(mutex_);
    if (error_ == nullptr) error_ = std::move(error);
  }
  stop_threads();
}

void HostPlatform::stop_threads() {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  for (ThreadExecutor* executor : executors_) executor->stop();
  changed_.notify_all();
}

}  // namespace perdura
