#include "platform/sim/sim_platform.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::sim {

namespace {

// What is durable follows from when accesses reach memory and domains, and relaxed ones have no
// times.
constexpr const char* kRelaxedAndTracked =
    "a simulation cannot be relaxed and track durability: use one for the order of accesses, one "
    "for power failures";

class Dying {
 public:
  explicit Dying(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  Dying(const Dying&) = delete;
  Dying& operator=(const Dying&) = delete;
  ~Dying() { flag_ = before_; }

 private:
  bool& flag_;
  bool before_;
};

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
  // It is one for all nodes, whoever has changed it since the profile was read.
  for (RoleProfile& role : profile_.roles) role.profile.ddio = profile_.ddio;
  for (const NodesOfRole& role : roles) {
    const Profile& described = profile_.of_role(role.role);
    const NodeProfile& kind = &role == &roles.front() ? described.server : described.client;
    for (NodeId i = 0; i < role.nodes; ++i) {
      const auto id = static_cast<NodeId>(nodes_.size());
      const NodeId on = machine_of(machines, id);
      Machine& machine = machines_.try_emplace(on, engine_, described, kind, on).first->second;
      add_node(machine);
    }
  }
  node_count_ = static_cast<NodeId>(nodes_.size());
}

SimNode& SimPlatform::add_node(Machine& machine) {
  const auto id = static_cast<NodeId>(nodes_.size());
  SimNode& node =
      nodes_.emplace_back(engine_, machine, id, network_, directory_, sockets_, failure_);
  node.set_start_child([this, &node](ChildProgram program, ChildOrder order) {
    return start_child(node, std::move(program), std::move(order));
  });
  return node;
}

SimPlatform::SimPlatform(Profile profile, NodeId nodes, const Machines& machines)
    : SimPlatform(
          std::move(profile),
          {{"server", std::min<NodeId>(nodes, 1)}, {"client", nodes - std::min<NodeId>(nodes, 1)}},
          machines) {}

SimPlatform::~SimPlatform() { end_all(); }

Node* SimPlatform::local_node(NodeId id) { return id < nodes_.size() ? &nodes_[id] : nullptr; }

std::shared_ptr<StartedThread> SimPlatform::start(NodeId node, fabric::Port port,
                                                  CompletionMode mode, Body body) {
  ++unfinished_;
  return launch(node, port, mode, std::move(body), false);
}

std::shared_ptr<StartedThread> SimPlatform::start_service(NodeId node, fabric::Port port,
                                                          CompletionMode mode, Body body) {
  return launch(node, port, mode, std::move(body), true);
}

std::shared_ptr<StartedThread> SimPlatform::launch(NodeId node, fabric::Port port,
                                                   CompletionMode mode, Body body, bool service) {
  SimNode& process = nodes_.at(node);
  SimThread& thread = process.add_thread(mode);
  const auto& started = running_.emplace_back(std::make_shared<Running>());
  Running& running = *started;
  running.platform = this;
  running.thread = &thread;
  running.endpoint = process.make_endpoint(thread, port);
  running.context = std::make_unique<Thread>(Thread{process, thread, *running.endpoint});
  running.body = std::move(body);
  running.node = node;
  running.service = service;
  begin(started);
  if (durability_.observer != nullptr) durability_.observer->started(node, engine_.now());
  return started;
}

// A thread of a process begins when the process that was the node before is gone.
void SimPlatform::begin(const std::shared_ptr<Running>& running) {
  const SimThread* const caller = SimThread::running();
  const Picoseconds wait =
      nodes_.at(running->node).free_from() - (caller != nullptr ? caller->now() : engine_.now());
  if (wait <= Picoseconds::zero()) {
    running->thread->spawn(run_body(*this, *running));
    return;
  }
  network_.after(wait, [this, running] {
    if (!running->ended) running->thread->spawn(run_body(*this, *running));
  });
}

Task<> SimPlatform::run_body(SimPlatform& platform, Running& running) {
  co_await running.body(*running.context);
  if (!running.ended && !running.service) --platform.unfinished_;
  running.ended = true;
}

void SimPlatform::end(Running& running) {
  if (!running.ended && !running.service) --unfinished_;
  running.ended = true;
  running.thread->stop();
  running.endpoint.reset();
}

void SimPlatform::end_all() {
  const Dying dying(dying_);
  // Ending a thread may start another one, so the list may grow.
  for (std::size_t i = 0; i < running_.size(); ++i) end(*running_[i]);
}

void SimPlatform::stop(Running& running) {
  if (SimThread::running() == running.thread) {
    throw UsageError("a thread cannot stop itself; let its body end, or another one stop it");
  }
  end(running);
}

void SimPlatform::fail(const std::string& problem) {
  if (!failure_) failure_ = std::make_exception_ptr(PlatformError(problem));
}

// The results of a simulation that is cut off by the end of virtual time would be wrong, so it
// fails.
void SimPlatform::check_time() {
  if (!time_ran_out && engine_.now() < kEndOfTime) return;
  fail(fmt::format(
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
    fail("the simulation was interrupted");
  } else if (engine_.now() != seen_) {
    seen_ = engine_.now();
    events_seen_ = engine_.fired();
  } else if (engine_.fired() - events_seen_ > kMostAtOnce) {
    fail(
        fmt::format("virtual time stands still at {} us; give polling, sleeping and retrying a "
                    "time in profile {}",
                    to_microseconds(seen_.time_since_epoch()), profile_.name));
  }
}

void SimPlatform::stall(NodeId node, std::uint32_t thread, std::vector<Stall> stalls) {
  nodes_.at(node).stall(thread, std::move(stalls));
}

void SimPlatform::choose_schedule(const ScheduleChoices& choices) {
  network_.delays = {choices.messages, choices.devices};
  for (SimNode& node : nodes_) node.choose_schedule(choices.threads);
}

std::uint64_t SimPlatform::steps(NodeId node) {
  std::uint64_t steps = 0;
  for (const SimThread& thread : nodes_.at(node).threads()) steps += thread.steps();
  return steps;
}

void SimPlatform::run() {
  constexpr int kEventsBetweenLooks = 4096;
  int events_until_look = 1;
  time_ran_out = false;
  while (unfinished_ > 0 && !failure_ && engine_.now() < kEndOfTime) {
    if (--events_until_look == 0) {
      events_until_look = kEventsBetweenLooks;
      look_after_run();
      if (failure_) break;
    }
    if (between_events_) [[unlikely]] {
      between_events_();
      if (unfinished_ == 0) break;
    }
    const bool goes_on = choices_ == nullptr ? engine_.step() : relaxed_step();
    if (!goes_on) {
      fail("the simulation stands still: every thread waits for something");
    }
  }
  check_time();
  end_all();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void SimPlatform::relax(pmem::Choices& choices) {
  for (SimNode& node : nodes_) {
    if (node.journal() != nullptr) throw UsageError(kRelaxedAndTracked);
  }
  choices_ = &choices;
  engine_.relax();
  // Everything that is on its way to memory is there.
  constexpr Picoseconds kLong = std::chrono::seconds(1);
  engine_.advance(kLong);
}

// An event, a store that leaves its buffer, or a step of a device.
bool SimPlatform::relaxed_step() {
  const std::size_t events = engine_.pending();
  std::vector<SimThread*> storing;
  for (SimNode& node : nodes_) {
    for (SimThread& thread : node.threads()) {
      if (!thread.store_buffer().empty()) storing.push_back(&thread);
    }
  }
  device_steps_.clear();
  network_.list_steps(device_steps_);
  const std::size_t all = events + storing.size() + device_steps_.size();
  if (all == 0) return false;
  std::size_t chosen = 0;
  try {
    if (all > 1) chosen = choices_->choose(all);
  } catch (...) {
    failure_ = std::current_exception();
    return true;
  }
  // Time goes on, so that timers and limits of real time work.
  constexpr Picoseconds kStep = std::chrono::nanoseconds(1);
  if (chosen < events) {
    engine_.fire_pending(chosen, kStep);
    return true;
  }
  engine_.advance(kStep);
  chosen -= events;
  if (chosen < storing.size()) {
    storing[chosen]->store_buffer().drain_one();
  } else {
    device_steps_[chosen - storing.size()].take();
  }
  return true;
}

void SimPlatform::append_state(std::string& state) {
  for (SimNode& node : nodes_) {
    for (SimThread& thread : node.threads()) thread.append_state(state);
  }
  for (auto& [id, machine] : machines_) state += machine.nic().in_atomic ? 'a' : '-';
  network_.append_state(state);
}

std::unique_ptr<Platform::Barrier> SimPlatform::create_barrier(std::uint32_t participants) {
  return std::make_unique<SimBarrier>(participants);
}

void SimPlatform::at(Time when, std::function<void()> function) {
  network_.after(when - engine_.now(), std::move(function));
}

void SimPlatform::end_all_of(NodeId node) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->node == node) end(*running_[i]);
  }
}

void SimPlatform::kill(NodeId node) {
  SimNode& process = nodes_.at(node);
  Machine& machine = machines_.at(process.machine());
  const Time gone = network_.end_begun(node);
  std::vector<const SimThread*> threads;
  for (const SimThread& thread : process.threads()) threads.push_back(&thread);
  if (durability_.observer != nullptr) durability_.observer->died(node, engine_.now());
  machine.begin_death(threads);
  {
    const Dying dying(dying_);
    end_all_of(node);
  }
  machine.end_death(node);
  process.set_free_from(gone);
  bury(node);
}

// --- child processes -----------------------------------------------------------------------------

Task<std::unique_ptr<ChildProcess>> SimPlatform::start_child(SimNode& parent, ChildProgram program,
                                                             ChildOrder order) {
  check_ring_shape(order.memory, order.messages);
  const std::unique_ptr<pmem::Region> memory = parent.open_region(order.memory);
  if (!memory) throw UsageError(fmt::format("there is no region '{}'", order.memory));
  check_parts(order.parts, memory->size(), order.memory);
  Machine& machine = machines_.at(parent.machine());
  SimNode& node = add_node(machine);
  node.choose_schedule(parent.schedule());
  const auto ring = [&](std::string_view direction) {
    return machine.ring(fmt::format(".{} {}", direction, node.id()), order.messages)
        .shared_from_this();
  };
  auto life = std::make_shared<ChildLife>();
  life->node = node.id();
  life->parent = parent.id();
  life->to_child = ring("to");
  life->to_parent = ring("from");
  children_.emplace(node.id(), life);
  launch(
      node.id(), 0, order.mode,
      [life, program = std::move(program), order](Thread& thread) {
        return run_sim_child(thread.node, life, program, order);
      },
      true);
  auto child = sim_child(life, [this, id = node.id()] { kill_child(id); });
  while (!life->ready && !life->gone) co_await wait(life->changed);
  if (!life->ready) {
    throw PlatformError(life->problem.empty() ? "the process has died" : life->problem);
  }
  co_return child;
}

void SimPlatform::kill_child(NodeId child) {
  if (!dying_ && children_.contains(child)) kill(child);
}

void SimPlatform::bury(NodeId node) {
  if (const auto found = children_.find(node); found != children_.end()) {
    const std::shared_ptr<ChildLife> life = found->second;
    children_.erase(found);
    Machine& machine = machines_.at(nodes_.at(node).machine());
    for (const char* direction : {"to", "from"}) {
      machine.remove_ring(fmt::format(".{} {}", direction, node));
    }
    life->end();
  }
  std::vector<NodeId> orphans;
  for (const auto& [id, life] : children_) {
    if (life->parent == node) orphans.push_back(id);
  }
  for (const NodeId orphan : orphans) kill(orphan);
}

std::size_t SimPlatform::break_connections(fabric::Address at, fabric::Address peer) {
  return network_.break_connections(at, peer);
}

void SimPlatform::track_durability(pmem::PersistenceModel model) {
  if (engine_.relaxed()) throw UsageError(kRelaxedAndTracked);
  durability_.model = model;
  for (auto& [id, machine] : machines_) machine.track(durability_);
}

void SimPlatform::list_moments() { durability_.list_moments = true; }

std::set<Time>& SimPlatform::moments() {
  for (auto& [id, machine] : machines_) {
    if (machine.journal() != nullptr) machine.journal()->catch_up();
  }
  return durability_.moments;
}

void SimPlatform::fail_power(std::span<const NodeId> nodes, pmem::Choices& choices) {
  std::vector<NodeId> failing;
  for (const NodeId node : nodes) {
    const NodeId machine = nodes_.at(node).machine();
    if (std::find(failing.begin(), failing.end(), machine) == failing.end()) {
      failing.push_back(machine);
    }
  }
  const Dying dying(dying_);
  for (const NodeId machine : failing) machines_.at(machine).cut_power(choices);
  for (SimNode& node : nodes_) {
    const auto fails = std::find(failing.begin(), failing.end(), node.machine());
    if (fails == failing.end()) continue;
    end_all_of(node.id());
    // The device has ended with them.
    node.set_free_from(engine_.now());
  }
  for (const NodeId machine : failing) machines_.at(machine).restore_power();
  std::erase_if(children_, [&](const auto& each) {
    const NodeId machine = nodes_.at(each.first).machine();
    return std::find(failing.begin(), failing.end(), machine) != failing.end();
  });
}

}  // namespace perdura::sim
