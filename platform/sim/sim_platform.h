// The platform `sim`: a whole cluster in one process and one thread, in virtual time. The same
// profile, program and seed give the same result to the last digit on every machine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "platform/pmem/model/choices.h"
#include "platform/pmem/model/persistence.h"
#include "platform/sim/kernel/engine.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/thread.h"

namespace perdura::sim {

class Machine;
class RunObserver;

struct NodesOfRole {
  std::string role;
  NodeId nodes = 1;
};

class SimPlatform final : public Platform {
 public:
  // Makes the nodes of each role, numbered in the order of roles. A machine is as the profile
  // describes the role of its first node. Throws UsageError if the profile describes a role that is
  // not among them, or if `machines` is not possible.
  SimPlatform(Profile profile, const std::vector<NodesOfRole>& roles,
              const Machines& machines = {});
  // A server and clients.
  SimPlatform(Profile profile, NodeId nodes, const Machines& machines = {});
  ~SimPlatform() override;

  std::string_view name() const override { return "sim"; }
  bool modelled() const override { return true; }
  // Without child processes, which are further nodes, in the order in which they are started.
  NodeId node_count() const override { return node_count_; }
  Node* local_node(NodeId id) override;
  std::shared_ptr<StartedThread> start(NodeId node, fabric::Port port, CompletionMode mode,
                                       Body body) override;
  std::shared_ptr<StartedThread> start_service(NodeId node, fabric::Port port, CompletionMode mode,
                                               Body body) override;
  void run() override;
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

  // Calls `function` at a time of the run. It may start threads and kill nodes.
  void at(Time when, std::function<void()> function);
  // Kills a node's process: its threads stop wherever they are, and its DRAM, connections and
  // registrations are lost. What it has stored to PM regions stays, flushed or not; stores that it
  // would have made later, on which its tasks run ahead, are not made. Other nodes of the machine
  // go on. Must not be called from a task of the node.
  //
  // The device still finishes what it has begun for the process's connections, and drops the rest.
  // The process is gone only then, at gone_at(), and threads that are started on the node begin no
  // sooner (docs/restart.md).
  void kill(NodeId node);
  Time gone_at(NodeId node) const;
  // Breaks all connections between two endpoints, such as when a queue pair of `at` gets into the
  // error state: operations under way are flushed on both sides, and each side's completion queue
  // reports `disconnected`; `at` knows at once, `peer` as soon as the news can arrive. Messages
  // that are on the wire then are lost, long ones perhaps only in their last packets. Returns how
  // many broke.
  std::size_t break_connections(fabric::Address at, fabric::Address peer);
  // True if there is a connection that break_connections() would break.
  bool connected(fabric::Address at, fabric::Address peer) const;

  // Makes a thread stand still in these intervals, which are disjoint and in the order of time. A
  // node's threads, background threads included, are numbered from 0 in the order in which they
  // are started, over restarts of the node. Must be called before the thread is started.
  void stall(NodeId node, std::uint32_t thread, std::vector<Stall> stalls);

  // Streams of choices that decide what a simulation otherwise decides by its times and by the
  // order of arrival. Null: as without this call. Must be called before threads are started.
  struct ScheduleChoices {
    pmem::Choices* messages = nullptr;  // how late each message is (fabric::sim::DelayChoices)
    pmem::Choices* devices = nullptr;   // how late each placement in memory is
    ThreadChoices threads{};            // the choices of all threads
  };
  void choose_schedule(const ScheduleChoices& choices);

  // Must be called before run(). From now on, changes of the persistent regions of all nodes are
  // reported to the persistence model (platform/pmem/sim/journal.h). Without this call nothing is
  // recorded, and there is no overhead. The model's DDIO and transport decide what survives; the
  // profile's DDIO decides what accesses cost in time. They are separate so that the same run, to
  // the picosecond, can be judged under different models. Throws UsageError after relax().
  void track_durability(pmem::PersistenceModel model);
  // From now on, reports what happens to `observer`, which must outlive the run. Must be called
  // after track_durability() and before threads are started.
  void observe(RunObserver& observer);
  // A power failure of the machines of these nodes at one instant, after which power is back at
  // once: the threads of all nodes of each stop wherever they are, their DRAM, connections and
  // registrations are lost, and the persistent regions hold one of the images that the model
  // allows; `choices` selects which. Must not be called from a task of such a node. Throws
  // UsageError without track_durability().
  void fail_power(std::span<const NodeId> nodes, pmem::Choices& choices);
  void fail_power(NodeId node, pmem::Choices& choices) { fail_power({&node, 1}, choices); }

  // The machine of a node, for simulations that recover from a failure of another one
  // (Machine::crashed(), adopt()).
  Machine& machine_of_node(NodeId node);

  // From now on, if durability is tracked, crash_points() contains the times up to now at which the
  // set of possible images changed. The caller may remove times that it has handled.
  void list_crash_points();
  std::set<Time>& crash_points();
  // Sets a function that is called before the first event of the run and between any two events. It
  // may do what a function passed to at() may do.
  void between_events(std::function<void()> function) { between_events_ = std::move(function); }

  // From now on, which may be during the run, `choices` decides what comes next: which thread goes
  // on, which store leaves a store buffer, which part of which operation a device carries out.
  // Everything that the order of the fabric and of the CPUs allows may come next
  // (docs/memory-model.md); times, which then mean nothing, do not matter. Tasks are indivisible
  // between two suspensions. An exception that `choices` throws ends the run. Throws UsageError
  // after track_durability().
  void relax(pmem::Choices& choices);
  // Appends what a relaxed simulation's next steps depend on, besides memory and the state of
  // tasks.
  void append_state(std::string& state);

  // run() throws PlatformError within milliseconds of real time after the flag has become true. The
  // flag must outlive the run.
  void end_when(const std::atomic<bool>& flag) { end_ = &flag; }

  // The number of times that tasks of a node's threads have been resumed so far.
  std::uint64_t steps(NodeId node);

  Engine& engine() { return engine_; }
  const Profile& profile() const { return profile_; }

 private:
  void check_time();
  void look_after_run();

  Profile profile_;
  Engine engine_;
  std::function<void()> between_events_;
  // Holds most classes of the simulation, which those who use the platform need not compile.
  class Cluster;
  std::unique_ptr<Cluster> cluster_;
  NodeId node_count_ = 0;
  pmem::Choices* choices_ = nullptr;        // only in a relaxed simulation
  const std::atomic<bool>* end_ = nullptr;  // null: the run cannot be ended from outside
  // To detect that virtual time no longer advances.
  Time seen_{};
  std::uint64_t events_seen_ = 0;
};

}  // namespace perdura::sim
