#include "platform/shm_platform.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "platform/error.h"
#include "platform/numa.h"
#include "platform/pmem/mapped/instructions.h"

namespace perdura {
namespace {

using fabric::shm::ShmEndpoint;
using runtime::ThreadExecutor;

constexpr Nanoseconds kLookForDeadNodes = Milliseconds(20);

std::vector<NodeId> local_nodes(const ShmOptions& options) {
  if (!options.local_nodes.empty()) return options.local_nodes;
  std::vector<NodeId> all(options.node_count);
  std::iota(all.begin(), all.end(), NodeId{0});
  return all;
}

Placement placement_of(const ShmOptions& options, NodeId node) {
  return node < options.placements.size() ? options.placements[node] : Placement{};
}

// Gives a doorbell back at the end of its thread.
struct DoorbellLease {
  fabric::shm::Job& job;
  std::uint32_t index;
  ~DoorbellLease() { job.release_doorbell(index); }
};

}  // namespace

ShmPlatform::ShmPlatform(ShmOptions options)
    : options_(std::move(options)),
      local_ids_(local_nodes(options_)),
      job_(options_.job, options_.node_count, local_ids_),
      watch_(job_),
      runs_(job_.runs_before()) {
  pmem::mapped::set_write_latency(options_.write_latency);
  const std::string pm =
      options_.pm_directory.empty() ? job_.directory() + "/pm" : options_.pm_directory;
  for (const NodeId id : local_ids_) {
    nodes_.push_back(
        std::make_unique<ShmNode>(job_, id, pm, options_.accounting, placement_of(options_, id)));
  }
}

ShmPlatform::~ShmPlatform() = default;

Node* ShmPlatform::local_node(NodeId id) {
  const auto found = std::find(local_ids_.begin(), local_ids_.end(), id);
  if (found == local_ids_.end()) return nullptr;
  return nodes_[static_cast<std::size_t>(found - local_ids_.begin())].get();
}

void ShmPlatform::start(NodeId node, fabric::Port port, CompletionMode mode, Body body) {
  plan(node, port, mode, std::move(body), false);
}

void ShmPlatform::start_service(NodeId node, fabric::Port port, CompletionMode mode, Body body) {
  plan(node, port, mode, std::move(body), true);
}

void ShmPlatform::plan(NodeId node, fabric::Port port, CompletionMode mode, Body body,
                       bool service) {
  auto* local = static_cast<ShmNode*>(local_node(node));
  if (local == nullptr) {
    throw UsageError(
        fmt::format("a thread was started on node {}, which is not in this process", node));
  }
  planned_.push_back({local, port, mode, std::move(body), service, cores_for_next_thread(node)});
}

std::vector<unsigned> ShmPlatform::cores_for_next_thread(NodeId node) const {
  const std::vector<unsigned> cores = placement_of(options_, node).cores;
  if (cores.empty()) return {};
  const auto before = static_cast<std::size_t>(std::count_if(
      planned_.begin(), planned_.end(), [&](const auto& t) { return t.node->id() == node; }));
  return {cores[before % cores.size()]};
}

void ShmPlatform::run() {
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
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return unfinished_ == 0 || stopping_; });
  }
  ++runs_;
  for (const NodeId id : local_ids_) {
    auto& status = job_.control().nodes[id];
    if (error_ != nullptr) status.failed.store(1, std::memory_order_seq_cst);
    status.ended_runs.store(runs_, std::memory_order_seq_cst);
  }
  job_.control().run_changed.wake();
  if (error_ != nullptr) job_.ring_all();  // some wait in barriers for this node
  if (error_ == nullptr) await_all_nodes();
  for (const NodeId id : local_ids_) {
    job_.control().nodes[id].whole_runs.store(runs_, std::memory_order_seq_cst);
  }
  stop_threads();
  for (std::thread& thread : running) thread.join();
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void ShmPlatform::await_all_nodes() {
  auto& bell = job_.control().run_changed;
  std::vector<NodeId> others;
  for (NodeId id = 0; id < options_.node_count; ++id) {
    if (local_node(id) == nullptr) others.push_back(id);
  }
  for (;;) {
    const std::uint32_t sequence = bell.sequence.load(std::memory_order_seq_cst);
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_) return;
    }
    std::erase_if(others, [this](NodeId id) {
      const auto& status = job_.control().nodes[id];
      return status.ended_runs.load(std::memory_order_seq_cst) >= runs_ ||
             (status.joined.load(std::memory_order_seq_cst) != 0 && watch_.find(id) == nullptr);
    });
    if (others.empty()) return;
    bell.wait(sequence, kLookForDeadNodes);
  }
}

void ShmPlatform::run_thread(const PlannedThread& planned) {
  ThreadUse& use = planned.node->add_thread();
  use.begin();
  pmem::thread_write_meter().set_level(options_.accounting);
  try {
    if (!pin_this_thread(planned.cores)) {
      throw UsageError(fmt::format(
          "node {}: a thread cannot be pinned to core {}, which this process may not use",
          planned.node->id(), planned.cores.front()));
    }
    // Background threads are started by this one, and so are bound, too.
    const MemoryBinding binding(planned.node->placement().numa_node);
    const DoorbellLease lease{job_, job_.allocate_doorbell(planned.node->id())};
    ThreadExecutor executor(job_.control().clock, planned.mode, job_.doorbell(lease.index),
                            [this](std::exception_ptr error) { fail(std::move(error)); });
    ShmEndpoint endpoint(job_, planned.node->memory(), watch_, options_.fabric,
                         {planned.node->id(), planned.port}, lease.index, executor);
    WritesPublisher publisher(use);
    executor.add_poller(endpoint);
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
  } catch (...) {
    fail(std::current_exception());
  }
  use.end();
}

Task<> ShmPlatform::run_body(const PlannedThread& planned, Thread& thread) {
  co_await planned.body(thread);
  if (planned.service) co_return;
  // What the body spawned goes on until everybody has ended, without burning a core.
  static_cast<ThreadExecutor&>(thread.executor).set_mode(CompletionMode::event);
  thread_ended();
}

void ShmPlatform::thread_ended() {
  const std::scoped_lock lock(mutex_);
  --unfinished_;
  changed_.notify_all();
}

void ShmPlatform::fail(std::exception_ptr error) {
  {
    const std::scoped_lock lock(mutex_);
    if (error_ == nullptr) error_ = std::move(error);
  }
  stop_threads();
}

void ShmPlatform::stop_threads() {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  for (ThreadExecutor* executor : executors_) executor->stop();
  changed_.notify_all();
}

}  // namespace perdura
