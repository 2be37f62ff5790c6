#include "platform/shm/shm_platform.h"

#include <algorithm>
#include <utility>

#include "platform/pmem/instructions.h"
#include "platform/shm/shm_rendezvous.h"

namespace perdura {
namespace {

using fabric::shm::ShmEndpoint;
using host::ThreadExecutor;

constexpr Nanoseconds kLookForDeadNodes = Milliseconds(20);

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
    : HostPlatform(options.node_count, options.local_nodes, options.accounting),
      options_(std::move(options)),
      job_(options_.job, options_.node_count, local_ids(), options_.join_timeout),
      watch_(job_),
      runs_(job_.runs_before()) {
  pmem::set_write_latency(options_.write_latency);
  const std::string pm =
      options_.pm_directory.empty() ? job_.directory() + "/pm" : options_.pm_directory;
  const auto rendezvous = std::make_shared<ShmRendezvous>(job_);
  for (const NodeId id : local_ids()) {
    const NodeId machine = machine_of(options_.machines, id);
    const std::string directory = options_.pm_directory_of_nodes.empty()
                                      ? HostNode::directory_of(pm, machine)
                                      : options_.pm_directory_of_nodes;
    auto node = std::make_unique<ShmNode>(job_, id, machine, directory, options_.disk_directory,
                                          options_.accounting, placement_of(options_, id),
                                          rendezvous, options_.fabric.connection_timeout);
    node->set_access(options_.pm_access);
    add_node(std::move(node));
  }
}

ShmPlatform::~ShmPlatform() { drop_nodes(); }

void ShmPlatform::with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                                const RunThread& run) {
  const DoorbellLease lease{job_, job_.allocate_doorbell(node.id())};
  ThreadExecutor executor(job_.control().clock, mode, job_.doorbell(lease.index),
                          [this](std::exception_ptr error) { fail(std::move(error)); });
  ShmEndpoint endpoint(job_, static_cast<ShmNode&>(node).memory(), node.traffic_meter(), watch_,
                       options_.fabric, {node.id(), port}, lease.index, executor);
  executor.add_poller(endpoint);
  run(executor, endpoint);
}

void ShmPlatform::meet_other_nodes(bool failed) {
  if (!options_.meets) return;
  ++runs_;
  for (const NodeId id : local_ids()) {
    auto& status = job_.control().nodes[id];
    if (failed) status.failed.store(1, std::memory_order_seq_cst);
    status.ended_runs.store(runs_, std::memory_order_seq_cst);
  }
  job_.control().run_changed.wake();
  if (failed) {
    job_.ring_all();  // threads of other nodes may wait for this node in barriers
  } else {
    await_other_nodes();
  }
  for (const NodeId id : local_ids()) {
    job_.control().nodes[id].whole_runs.store(runs_, std::memory_order_seq_cst);
  }
}

void ShmPlatform::await_other_nodes() {
  auto& bell = job_.control().run_changed;
  std::vector<NodeId> others;
  for (NodeId id = 0; id < options_.node_count; ++id) {
    if (local_node(id) == nullptr) others.push_back(id);
  }
  for (;;) {
    const std::uint32_t sequence = bell.sequence.load(std::memory_order_seq_cst);
    if (stopping()) return;
    std::erase_if(others, [this](NodeId id) {
      const auto& status = job_.control().nodes[id];
      return status.ended_runs.load(std::memory_order_seq_cst) >= runs_ ||
             (status.joined.load(std::memory_order_seq_cst) != 0 && watch_.find(id) == nullptr);
    });
    if (others.empty()) return;
    bell.wait(sequence, kLookForDeadNodes);
  }
}

}  // namespace perdura
