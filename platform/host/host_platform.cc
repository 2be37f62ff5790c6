#include "platform/host/host_platform.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "platform/base/error.h"
#include "platform/host/numa.h"

namespace perdura {

using host::ThreadExecutor;

HostPlatform::HostPlatform(NodeId node_count, std::vector<NodeId> local_nodes,
                           pmem::WriteMeter::Level accounting)
    : node_count_(node_count), local_ids_(std::move(local_nodes)), accounting_(accounting) {
  if (!local_ids_.empty()) return;
  local_ids_.resize(node_count);
  std::iota(local_ids_.begin(), local_ids_.end(), NodeId{0});
}

void HostPlatform::add_node(std::unique_ptr<HostNode> node) {
  node->set_threads({.with_endpoint =
                         [this, on = node.get()](fabric::Port port, const RunThread& run) {
                           with_endpoint(*on, port, CompletionMode::event, run);
                         },
                     .fail = [this](std::exception_ptr error) { fail(std::move(error)); }});
  nodes_.push_back(std::move(node));
}

HostNode* HostPlatform::host_node(NodeId id) {
  const auto found = std::find(local_ids_.begin(), local_ids_.end(), id);
  if (found == local_ids_.end()) return nullptr;
  return nodes_[static_cast<std::size_t>(found - local_ids_.begin())].get();
}

std::shared_ptr<StartedThread> HostPlatform::start(NodeId node, fabric::Port port,
                                                   CompletionMode mode, Body body) {
  return plan(node, port, mode, std::move(body), false);
}

std::shared_ptr<StartedThread> HostPlatform::start_service(NodeId node, fabric::Port port,
                                                           CompletionMode mode, Body body) {
  return plan(node, port, mode, std::move(body), true);
}

std::shared_ptr<StartedThread> HostPlatform::plan(NodeId node, fabric::Port port,
                                                  CompletionMode mode, Body body, bool service) {
  HostNode* local = host_node(node);
  if (local == nullptr) {
    throw UsageError(
        fmt::format("a thread was started on node {}, which is not in this process", node));
  }
  auto thread = std::make_shared<HostThread>(*this, *local, port, mode, std::move(body), service);
  const std::scoped_lock lock(mutex_);
  if (running_ && stopping_) return thread;  // it would be stopped at once, so it is not started
  thread->cores = least_used_core(*local);
  thread->awaited = !service;
  if (thread->awaited) ++awaited_;
  threads_.push_back(thread);
  if (!running_) return thread;
  try {
    launch(thread);
  } catch (...) {
    await_no_longer(*thread);
    threads_.pop_back();
    throw;
  }
  return thread;
}

std::vector<unsigned> HostPlatform::least_used_core(const HostNode& node) const {
  const std::vector<unsigned>& cores = node.placement().cores;
  if (cores.empty()) return {};
  const auto threads_on = [&](unsigned core) {
    return std::count_if(threads_.begin(), threads_.end(), [&](const auto& thread) {
      return &thread->node == &node && thread->cores.front() == core;
    });
  };
  return {*std::min_element(cores.begin(), cores.end(),
                            [&](unsigned a, unsigned b) { return threads_on(a) < threads_on(b); })};
}

void HostPlatform::launch(const std::shared_ptr<HostThread>& thread) {
  thread->ended = false;
  try {
    thread->os_thread = OsThread([this, thread] { run_thread(*thread); });
  } catch (...) {
    thread->ended = true;
    throw;
  }
  thread->id = thread->os_thread.id();
}

void HostPlatform::run() {
  bool failed;
  {
    std::unique_lock lock(mutex_);
    running_ = true;
    stopping_ = false;
    error_ = nullptr;
    not_ready_ = threads_.size();
    try {
      for (const auto& thread : threads_) {
        thread->begins_with_others = true;
        launch(thread);
      }
    } catch (...) {
      // Those that were started use this platform, and are joined as after any other failure.
      fail_locked(std::current_exception());
    }
    changed_.wait(lock, [this] { return awaited_ == 0 || stopping_; });
    failed = error_ != nullptr;
  }
  meet_other_nodes(failed);
  stop_threads();
  join_threads();
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void HostPlatform::join_threads() {
  for (;;) {
    OsThread thread;
    {
      std::unique_lock lock(mutex_);
      const auto found = std::find_if(threads_.begin(), threads_.end(),
                                      [](const auto& t) { return t->os_thread.joinable(); });
      if (found == threads_.end()) {
        // Other threads may be joining threads that they have stopped.
        changed_.wait(lock, [this] {
          return std::all_of(threads_.begin(), threads_.end(),
                             [](const auto& t) { return t->ended; });
        });
        // Threads that were started belong to this run, even if it failed; the next run begins with
        // none.
        threads_.clear();
        awaited_ = 0;
        running_ = false;
        return;
      }
      thread = std::move((*found)->os_thread);
    }
    thread.join();
  }
}

void HostPlatform::run_thread(HostThread& thread) {
  try {
    ThreadUse& use = thread.node.add_thread();
    use.begin();
    const struct EndOfUse {
      ThreadUse& use;
      ~EndOfUse() { use.end(); }
    } end_of_use{use};
    pmem::thread_write_meter().set_level(accounting_);
    if (!pin_this_thread(thread.cores)) {
      throw UsageError(fmt::format(
          "node {}: a thread cannot be pinned to core {}, which this process may not use",
          thread.node.id(), thread.cores.front()));
    }
    // Background threads inherit the binding from this thread, which starts them.
    const MemoryBinding binding(thread.node.placement().numa_node);
    with_endpoint(thread.node, thread.port, thread.mode,
                  [&](ThreadExecutor& executor, fabric::Endpoint& endpoint) {
                    run_on(thread, use, executor, endpoint);
                  });
  } catch (...) {
    fail(std::current_exception());
  }
  const std::scoped_lock lock(mutex_);
  thread.ended = true;
  changed_.notify_all();
}

void HostPlatform::run_on(HostThread& started, ThreadUse& use, ThreadExecutor& executor,
                          fabric::Endpoint& endpoint) {
  WritesPublisher publisher(use);
  executor.add_poller(publisher);
  Thread thread{started.node, executor, endpoint};
  // Also if the body cannot begin for lack of memory: nobody stops an executor that is gone.
  const struct NoExecutor {
    HostPlatform& platform;
    HostThread& thread;
    ~NoExecutor() {
      const std::scoped_lock lock(platform.mutex_);
      thread.executor = nullptr;
    }
  } no_executor{*this, started};
  bool go;
  {
    std::unique_lock lock(mutex_);
    started.executor = &executor;
    if (started.begins_with_others) {
      --not_ready_;
      changed_.notify_all();
      // All threads begin together, so that none measures the start of the others.
      changed_.wait(lock, [&] { return not_ready_ == 0 || stopping_ || started.stopped; });
    }
    go = !stopping_ && !started.stopped;
  }
  if (go) {
    executor.spawn(run_body(started, thread));
    executor.run();
  }
}

Task<> HostPlatform::run_body(HostThread& started, Thread& thread) {
  co_await started.body(thread);
  if (started.service) co_return;
  // Tasks that the body spawned go on until all threads have ended. The thread no longer polls, so
  // that it does not burn a core.
  static_cast<ThreadExecutor&>(thread.executor).set_mode(CompletionMode::event);
  const std::scoped_lock lock(mutex_);
  await_no_longer(started);
}

void HostPlatform::await_no_longer(HostThread& thread) {
  if (!std::exchange(thread.awaited, false)) return;
  --awaited_;
  changed_.notify_all();
}

void HostPlatform::stop(HostThread& thread) {
  OsThread mine;
  {
    std::unique_lock lock(mutex_);
    if (!thread.ended && thread.id == std::this_thread::get_id()) {
      throw UsageError("a thread cannot stop itself; let its body end, or another one stop it");
    }
    thread.stopped = true;
    await_no_longer(thread);
    if (thread.executor != nullptr) thread.executor->stop();
    changed_.notify_all();
    mine = std::move(thread.os_thread);
    if (!mine.joinable()) changed_.wait(lock, [&] { return thread.ended; });
  }
  if (mine.joinable()) mine.join();
  const std::scoped_lock lock(mutex_);
  std::erase_if(threads_, [&](const auto& t) { return t.get() == &thread; });
}

bool HostPlatform::stopping() {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

void HostPlatform::fail(std::exception_ptr error) {
  const std::scoped_lock lock(mutex_);
  fail_locked(std::move(error));
}

void HostPlatform::fail_locked(std::exception_ptr error) {
  if (error_ == nullptr) error_ = std::move(error);
  stop_threads_locked();
}

void HostPlatform::stop_threads() {
  const std::scoped_lock lock(mutex_);
  stop_threads_locked();
}

void HostPlatform::stop_threads_locked() {
  stopping_ = true;
  for (const auto& thread : threads_) {
    if (thread->executor != nullptr) thread->executor->stop();
  }
  changed_.notify_all();
}

}  // namespace perdura
