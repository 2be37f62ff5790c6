#include "platform/sim/sim_platform.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/sim/cluster.h"

namespace perdura::sim {

namespace {

// Durability follows from when accesses reach memory and persistence domains, and relaxed accesses
// have no times.
constexpr const char* kRelaxedAndTracked =
    "a simulation cannot be relaxed and track durability: use one for the order of accesses, one "
    "for power failures";

class SimBarrier final : public Platform::Barrier {
 public:
  explicit SimBarrier(std::uint32_t participants) : participants_(participants) {}

  Task<> arrive_and_wait() override {
    if (++arrived_ == participants_) {
      arrived_ = 0;
      ++generation_;
      waiting_.wake_all();
      co_return;
    }
    const std::uint64_t generation = generation_;
    while (generation == generation_) co_await wait(waiting_);
  }

 private:
  std::uint32_t participants_;
  std::uint32_t arrived_ = 0;
  std::uint64_t generation_ = 0;
  WaitList waiting_;
};

}  // namespace

SimPlatform::SimPlatform(Profile profile, const std::vector<NodesOfRole>& roles,
                         const Machines& machines)
    : profile_(std::move(profile)) {
  std::vector<std::string> names;
  for (const NodesOfRole& role : roles) names.push_back(role.role);
  check_roles(profile_, names);
  // DDIO is one setting for all nodes, even if it was changed after the profile was read.
  for (RoleProfile& role : profile_.roles) role.profile.ddio = profile_.ddio;
  cluster_ = std::make_unique<Cluster>(profile_, engine_, roles, machines);
  node_count_ = static_cast<NodeId>(cluster_->nodes.size());
}

SimPlatform::SimPlatform(Profile profile, NodeId nodes, const Machines& machines)
    : SimPlatform(
          std::move(profile),
          {{"server", std::min<NodeId>(nodes, 1)}, {"client", nodes - std::min<NodeId>(nodes, 1)}},
          machines) {}

SimPlatform::~SimPlatform() { cluster_->end_all(); }

Node* SimPlatform::local_node(NodeId id) {
  return id < cluster_->nodes.size() ? &cluster_->nodes[id] : nullptr;
}

std::shared_ptr<StartedThread> SimPlatform::start(NodeId node, fabric::Port port,
                                                  CompletionMode mode, Body body) {
  ++cluster_->unfinished;
  return cluster_->launch(node, port, mode, std::move(body), false);
}

std::shared_ptr<StartedThread> SimPlatform::start_service(NodeId node, fabric::Port port,
                                                          CompletionMode mode, Body body) {
  return cluster_->launch(node, port, mode, std::move(body), true);
}

// The results of a simulation that is cut off by the end of virtual time would be wrong, so it
// fails.
void SimPlatform::check_time() {
  if (!time_ran_out && engine_.now() < kEndOfTime) return;
  cluster_->fail(fmt::format(
      "virtual time would pass its end, {:.0f} days; raise the bandwidths or lower the times of "
      "profile {}, or run less",
      to_microseconds(kLongest) * 1e-6 / 86400, profile_.name));
}

// Ends a simulation that would never end by itself.
void SimPlatform::look_after_run() {
  // No cluster has so many events at one instant, unless its profile says that polling takes no
  // time; then virtual time never advances.
  constexpr std::uint64_t kMostAtOnce = 1U << 24;
  check_time();
  if (end_ != nullptr && end_->load(std::memory_order_relaxed)) {
    cluster_->fail("the simulation was interrupted");
  } else if (engine_.now() != seen_) {
    seen_ = engine_.now();
    events_seen_ = engine_.fired();
  } else if (engine_.fired() - events_seen_ > kMostAtOnce) {
    cluster_->fail(
        fmt::format("virtual time stands still at {} us; give polling, sleeping and retrying a "
                    "time in profile {}",
                    to_microseconds(seen_.time_since_epoch()), profile_.name));
  }
}

void SimPlatform::stall(NodeId node, std::uint32_t thread, std::vector<Stall> stalls) {
  cluster_->nodes.at(node).stall(thread, std::move(stalls));
}

void SimPlatform::choose_schedule(const ScheduleChoices& choices) {
  cluster_->network.delays = {choices.messages, choices.devices};
  for (SimNode& node : cluster_->nodes) node.choose_schedule(choices.threads);
}

std::uint64_t SimPlatform::steps(NodeId node) {
  std::uint64_t steps = 0;
  for (const SimThread& thread : cluster_->nodes.at(node).threads()) steps += thread.steps();
  return steps;
}

void SimPlatform::run() {
  constexpr int kEventsBetweenLooks = 4096;
  int events_until_look = 1;
  time_ran_out = false;
  while (cluster_->unfinished > 0 && !cluster_->failure && engine_.now() < kEndOfTime) {
    if (--events_until_look == 0) {
      events_until_look = kEventsBetweenLooks;
      look_after_run();
      if (cluster_->failure) break;
    }
    if (between_events_) [[unlikely]] {
      between_events_();
      if (cluster_->unfinished == 0) break;
    }
    const bool goes_on = choices_ == nullptr ? engine_.step() : cluster_->relaxed_step(*choices_);
    if (!goes_on) {
      cluster_->fail("the simulation stands still: every thread waits for something");
    }
  }
  check_time();
  cluster_->end_all();
  if (cluster_->failure) std::rethrow_exception(std::exchange(cluster_->failure, nullptr));
}

void SimPlatform::relax(pmem::Choices& choices) {
  for (SimNode& node : cluster_->nodes) {
    if (node.journal() != nullptr) throw UsageError(kRelaxedAndTracked);
  }
  choices_ = &choices;
  engine_.relax();
  // Everything that was on its way to memory has arrived.
  constexpr Picoseconds kLong = std::chrono::seconds(1);
  engine_.advance(kLong);
}

void SimPlatform::append_state(std::string& state) {
  for (SimNode& node : cluster_->nodes) {
    for (SimThread& thread : node.threads()) thread.append_state(state);
  }
  for (auto& [id, machine] : cluster_->machines) state += machine.nic().in_atomic ? 'a' : '-';
  cluster_->network.append_state(state);
}

std::unique_ptr<Platform::Barrier> SimPlatform::create_barrier(std::uint32_t participants) {
  return std::make_unique<SimBarrier>(participants);
}

void SimPlatform::at(Time when, std::function<void()> function) {
  cluster_->network.after(when - engine_.now(), std::move(function));
}

std::size_t SimPlatform::break_connections(fabric::Address at, fabric::Address peer) {
  return cluster_->network.break_connections(at, peer);
}

void SimPlatform::track_durability(pmem::PersistenceModel model) {
  if (engine_.relaxed()) throw UsageError(kRelaxedAndTracked);
  cluster_->durability.model = model;
  for (auto& [id, machine] : cluster_->machines) machine.track(cluster_->durability);
}

void SimPlatform::list_crash_points() { cluster_->durability.list_crash_points = true; }

std::set<Time>& SimPlatform::crash_points() {
  for (auto& [id, machine] : cluster_->machines) {
    if (machine.journal() != nullptr) machine.journal()->catch_up();
  }
  return cluster_->durability.crash_points;
}

Time SimPlatform::gone_at(NodeId node) const { return cluster_->nodes.at(node).free_from(); }

bool SimPlatform::connected(fabric::Address at, fabric::Address peer) const {
  return cluster_->network.connected(at, peer);
}

void SimPlatform::kill(NodeId node) { cluster_->kill(node); }

void SimPlatform::observe(RunObserver& observer) { cluster_->durability.observer = &observer; }

void SimPlatform::fail_power(std::span<const NodeId> nodes, pmem::Choices& choices) {
  cluster_->fail_power(nodes, choices);
}

Machine& SimPlatform::machine_of_node(NodeId node) {
  return cluster_->machines.at(cluster_->nodes.at(node).machine());
}

}  // namespace perdura::sim
