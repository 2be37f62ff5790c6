#include "platform/sim/cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::sim {

namespace {

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

}  // namespace

SimPlatform::Cluster::Cluster(const Profile& profile, Engine& engine,
                              const std::vector<NodesOfRole>& roles, const Machines& on)
    : network(engine), engine_(engine) {
  for (const NodesOfRole& role : roles) {
    const Profile& described = profile.of_role(role.role);
    const NodeProfile& kind = &role == &roles.front() ? described.server : described.client;
    for (NodeId i = 0; i < role.nodes; ++i) {
      const auto id = static_cast<NodeId>(nodes.size());
      const NodeId machine = machine_of(on, id);
      add_node(machines.try_emplace(machine, engine_, described, kind, machine).first->second);
    }
  }
}

SimNode& SimPlatform::Cluster::add_node(Machine& machine) {
  const auto id = static_cast<NodeId>(nodes.size());
  SimNode& node = nodes.emplace_back(engine_, machine, id, network, directory, sockets, failure);
  node.set_start_child([this, &node](ChildProgram program, ChildOrder order) {
    return start_child(node, std::move(program), std::move(order));
  });
  return node;
}

std::shared_ptr<StartedThread> SimPlatform::Cluster::launch(NodeId node, fabric::Port port,
                                                            CompletionMode mode, Body body,
                                                            bool service) {
  SimNode& process = nodes.at(node);
  SimThread& thread = process.add_thread(mode);
  const auto& started = running_.emplace_back(std::make_shared<Running>());
  Running& running = *started;
  running.cluster = this;
  running.thread = &thread;
  running.endpoint = process.make_endpoint(thread, port);
  running.context = std::make_unique<Thread>(Thread{process, thread, *running.endpoint});
  running.body = std::move(body);
  running.node = node;
  running.service = service;
  begin(started);
  if (durability.observer != nullptr) durability.observer->started(node, engine_.now());
  return started;
}

// Starts the thread's body once the previous process of the node is gone.
void SimPlatform::Cluster::begin(const std::shared_ptr<Running>& running) {
  const SimThread* const caller = SimThread::running();
  const Picoseconds wait =
      nodes.at(running->node).free_from() - (caller != nullptr ? caller->now() : engine_.now());
  if (wait <= Picoseconds::zero()) {
    running->thread->spawn(run_body(*this, *running));
    return;
  }
  network.after(wait, [this, running] {
    if (!running->ended) running->thread->spawn(run_body(*this, *running));
  });
}

Task<> SimPlatform::Cluster::run_body(Cluster& cluster, Running& running) {
  co_await running.body(*running.context);
  if (!running.ended && !running.service) --cluster.unfinished;
  running.ended = true;
}

void SimPlatform::Cluster::end(Running& running) {
  if (!running.ended && !running.service) --unfinished;
  running.ended = true;
  running.thread->stop();
  running.endpoint.reset();
}

void SimPlatform::Cluster::end_all() {
  const Dying dying(dying_);
  // Ending a thread may start another one, so the list may grow.
  for (std::size_t i = 0; i < running_.size(); ++i) end(*running_[i]);
}

void SimPlatform::Cluster::stop(Running& running) {
  if (SimThread::running() == running.thread) {
    throw UsageError("a thread cannot stop itself; let its body end, or another one stop it");
  }
  end(running);
}

void SimPlatform::Cluster::fail(const std::string& problem) {
  if (!failure) failure = std::make_exception_ptr(PlatformError(problem));
}

void SimPlatform::Cluster::end_all_of(NodeId node) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->node == node) end(*running_[i]);
  }
}

void SimPlatform::Cluster::kill(NodeId node) {
  SimNode& process = nodes.at(node);
  Machine& machine = machines.at(process.machine());
  const Time gone = network.end_begun(node);
  std::vector<const SimThread*> threads;
  for (const SimThread& thread : process.threads()) threads.push_back(&thread);
  if (durability.observer != nullptr) durability.observer->died(node, engine_.now());
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

Task<std::unique_ptr<ChildProcess>> SimPlatform::Cluster::start_child(SimNode& parent,
                                                                      ChildProgram program,
                                                                      ChildOrder order) {
  check_ring_shape(order.memory, order.messages);
  const std::unique_ptr<pmem::Region> memory = parent.open_region(order.memory);
  if (!memory) throw UsageError(fmt::format("there is no region '{}'", order.memory));
  check_parts(order.parts, memory->size(), order.memory);
  Machine& machine = machines.at(parent.machine());
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

void SimPlatform::Cluster::kill_child(NodeId child) {
  if (!dying_ && children_.contains(child)) kill(child);
}

void SimPlatform::Cluster::bury(NodeId node) {
  if (const auto found = children_.find(node); found != children_.end()) {
    const std::shared_ptr<ChildLife> life = found->second;
    children_.erase(found);
    Machine& machine = machines.at(nodes.at(node).machine());
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

void SimPlatform::Cluster::fail_power(std::span<const NodeId> of_nodes, pmem::Choices& choices) {
  std::vector<NodeId> failing;
  for (const NodeId node : of_nodes) {
    const NodeId machine = nodes.at(node).machine();
    if (std::find(failing.begin(), failing.end(), machine) == failing.end()) {
      failing.push_back(machine);
    }
  }
  const Dying dying(dying_);
  for (const NodeId machine : failing) machines.at(machine).cut_power(choices);
  for (SimNode& node : nodes) {
    const auto fails = std::find(failing.begin(), failing.end(), node.machine());
    if (fails == failing.end()) continue;
    end_all_of(node.id());
    // The device has finished, too.
    node.set_free_from(engine_.now());
  }
  for (const NodeId machine : failing) machines.at(machine).restore_power();
  std::erase_if(children_, [&](const auto& each) {
    const NodeId machine = nodes.at(each.first).machine();
    return std::find(failing.begin(), failing.end(), machine) != failing.end();
  });
}

bool SimPlatform::Cluster::relaxed_step(pmem::Choices& choices) {
  const std::size_t events = engine_.pending();
  std::vector<SimThread*> storing;
  for (SimNode& node : nodes) {
    for (SimThread& thread : node.threads()) {
      if (!thread.store_buffer().empty()) storing.push_back(&thread);
    }
  }
  device_steps_.clear();
  network.list_steps(device_steps_);
  const std::size_t all = events + storing.size() + device_steps_.size();
  if (all == 0) return false;
  std::size_t chosen = 0;
  try {
    if (all > 1) chosen = choices.choose(all);
  } catch (...) {
    failure = std::current_exception();
    return true;
  }
  // Time advances, so that timers and limits of real time work.
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

}  // namespace perdura::sim
