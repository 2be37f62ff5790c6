#include "platform/verbs/verbs_platform.h"

#include <fmt/core.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "platform/base/error.h"

namespace perdura {
namespace {

using fabric::verbs::Device;
using fabric::verbs::FixedJob;
using fabric::verbs::NodeMemory;
using fabric::verbs::OpenJob;
using fabric::verbs::VerbsEndpoint;
using host::ThreadExecutor;

class VerbsBarrier final : public Platform::Barrier {
 public:
  VerbsBarrier(FixedJob& control, NodeId node_count, std::uint32_t participants)
      : control_(control),
        node_count_(node_count),
        index_(control.create_barrier()),
        participants_(participants),
        phase_(control.barrier_phase(index_)) {}

  Task<> arrive_and_wait() override {
    const std::uint64_t phase = phase_.load(std::memory_order_seq_cst);
    // Threads that pass the barrier see what this thread wrote before it.
    if (current_thread_use != nullptr) {
      current_thread_use->writes.publish(pmem::thread_write_meter().writes());
    }
    control_.arrive(index_, participants_);
    co_await host::until([this, phase] {
      return phase_.load(std::memory_order_seq_cst) != phase ||
             control_.failed_node() != node_count_;
    });
    if (phase_.load(std::memory_order_seq_cst) == phase) {
      throw PlatformError(
          fmt::format("node {} has failed or ended; see its messages", control_.failed_node()));
    }
  }

 private:
  FixedJob& control_;
  NodeId node_count_;
  std::uint32_t index_;
  std::uint32_t participants_;
  const std::atomic<std::uint64_t>& phase_;
};

}  // namespace

VerbsPlatform::TemporaryDirectory::TemporaryDirectory(bool wanted) {
  if (!wanted) return;
  path_ = "/dev/shm/perdura-verbs-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) {
    throw PlatformError(
        fmt::format("cannot make a directory in /dev/shm: {}", pmem::mapped::error_text(errno)));
  }
}

VerbsPlatform::TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

VerbsPlatform::VerbsPlatform(VerbsOptions options)
    : HostPlatform(options.node_count, options.local_nodes, options.accounting),
      options_(std::move(options)),
      temporary_(options_.pm_directory.empty() && options_.pm_directory_of_nodes.empty()),
      device_(std::make_shared<Device>(options_.device)) {
  for (const NodeId id : local_ids()) memory_[id] = std::make_shared<NodeMemory>(device_);
  if (options_.open) {
    join_open_job();
  } else {
    join_fixed_job();
  }
  device_->set_on_failure([this] { control_->ring_all(); });
  const std::string& pm = options_.pm_directory.empty() ? temporary_.path() : options_.pm_directory;
  for (const NodeId id : local_ids()) {
    const Placement placement =
        id < options_.placements.size() ? options_.placements[id] : Placement{};
    const std::string directory = options_.pm_directory_of_nodes.empty()
                                      ? HostNode::directory_of(pm, id)
                                      : options_.pm_directory_of_nodes;
    auto node = std::make_unique<VerbsNode>(
        control_->clock(), id, directory, options_.disk_directory, options_.accounting, placement,
        memory_[id], rendezvous_, options_.fabric.connection_timeout);
    if (device_->capabilities().flush_persistence) node->try_flush_persistence();
    add_node(std::move(node));
  }
}

void VerbsPlatform::join_fixed_job() {
  rendezvous_ = std::make_shared<VerbsRendezvous>(
      VerbsRendezvous::job_of(options_.listener.get(), options_.coordinator));
  auto job = std::make_unique<FixedJob>(fabric::verbs::FixedJobOptions{
      .node_count = options_.node_count,
      .local_nodes = local_ids(),
      .listener = options_.listener,
      .coordinator = options_.coordinator,
      .lookup = [this](const auto& lookup, auto& found) { find_range(lookup, found); },
      .announced = [this](const auto& message) { rendezvous_->take(message); }});
  fixed_ = job.get();
  control_ = std::move(job);
  rendezvous_->set_control(*fixed_);
}

void VerbsPlatform::join_open_job() {
  if (local_ids().size() != 1) {
    throw UsageError("a process is one node of a job that processes join and leave");
  }
  auto job = std::make_unique<OpenJob>(fabric::verbs::OpenJobOptions{
      .job = options_.open->job,
      .node = local_ids().front(),
      .listens = options_.open->listens,
      .lookup = [this](const auto& lookup, auto& found) { find_range(lookup, found); }});
  open_ = job.get();
  control_ = std::move(job);
}

VerbsPlatform::~VerbsPlatform() {
  device_->set_on_failure(nullptr);
  drop_nodes();
}

void VerbsPlatform::find_range(const fabric::verbs::Message& lookup,
                               fabric::verbs::Message& found) const {
  found.words[0] = lookup.words[0];
  const auto memory = memory_.find(lookup.to.node);
  if (memory == memory_.end()) return;
  put_range(memory->second->find(static_cast<std::uint32_t>(lookup.words[0])), found);
}

void VerbsPlatform::with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                                  const RunThread& run) {
  runtime::EventDoorbell doorbell;
  ThreadExecutor executor(control_->clock(), mode, doorbell.bell(),
                          [this](std::exception_ptr error) { fail(std::move(error)); });
  VerbsEndpoint endpoint(device_, static_cast<VerbsNode&>(node).memory(), node.traffic_meter(),
                         *control_, options_.fabric, {node.id(), port}, executor);
  executor.add_poller(endpoint);
  run(executor, endpoint);
}

void VerbsPlatform::meet_other_nodes(bool failed) {
  if (fixed_ == nullptr) return;
  fixed_->end_run(++runs_, failed);
  if (!failed) fixed_->await_run(runs_, [this] { return stopping(); });
}

std::unique_ptr<Platform::Barrier> VerbsPlatform::create_barrier(std::uint32_t participants) {
  if (participants == 0) throw UsageError("a barrier needs at least one participant");
  if (fixed_ == nullptr) {
    throw UsageError("in a job that processes join and leave nobody meets at a barrier");
  }
  return std::make_unique<VerbsBarrier>(*fixed_, node_count(), participants);
}

}  // namespace perdura
