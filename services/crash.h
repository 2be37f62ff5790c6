// The interface by which a service lets its systems be explored under failures (explore): it
// provides small histories, and a judge of the state found after a failure. The exploration
// provides the rest: the crash points, the crash images, the restart, and which runs can be
// skipped.
//
// In a run, nodes 0, 1, ... hold what must survive (CrashScenario::servers()). The clients' nodes
// follow. The last node is that of the inspector, a client that connects when the power is back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "platform/pmem/model/persistence.h"
#include "services/event.h"
#include "services/system_state.h"
#include "services/verdict.h"

namespace perdura::services {

// The system to run, and how to run it.
struct CrashSetup {
  pmem::PersistenceModel model;
  // The system's parameters, in addition to those that make its store small.
  GivenParameters parameters{};
  // Make changes persistent by the method that the chooser finds for the model, instead of the
  // paper's; for a system that can (SystemInfo::chooses_method).
  bool correct = false;
  std::uint64_t seed = 1;  // seeds the clients' operations
  // In generated runs, data that a device has received may reach memory late, so that a WRITE may
  // complete before others can see it.
  bool late_placements = false;
};

// The roles of the clients in a history. A service has several schedules if one does not show
// everything.
struct CrashSchedule {
  std::string_view name;  // lower case with dashes
  std::string_view what;  // a short description
  bool usual = true;      // explored unless another one is asked for
};

// A failure of servers that may lose something: of all of them, or of a single one.
struct ServerFailure {
  Time when{};
  std::optional<NodeId> alone{};
};
inline std::vector<Time> times_of(std::span<const ServerFailure> failures) {
  std::vector<Time> times;
  for (const ServerFailure& failure : failures) times.push_back(failure.when);
  return times;
}

// A client's call and its answer; used to explain what a failure has undone.
struct CrashCall {
  // A value that a client wrote or was told: its identifying version, and its bytes, by which it is
  // found in memory.
  struct Value {
    std::uint64_t version = 0;
    std::vector<std::byte> bytes;
  };
  std::uint32_t client = 0;  // the inspector follows the clients
  // Calls of different objects, such as keys, are independent of each other.
  std::uint64_t object = 0;
  Time start{};
  Time end = Time::max();  // unless it was answered
  bool changes = false;    // if false, it only observes
  std::string what;        // "put of version 3 of key 0"
  std::string told;        // "done", "version 3"; empty if it was not answered
  std::vector<Value> values;

  bool answered() const { return end != Time::max(); }
};

// Increments a count for its lifetime.
class ScopedCount {
 public:
  explicit ScopedCount(std::uint32_t& count) : count_(count) { ++count_; }
  ~ScopedCount() { --count_; }
  ScopedCount(const ScopedCount&) = delete;
  ScopedCount& operator=(const ScopedCount&) = delete;

 private:
  std::uint32_t& count_;
};

// One run. The scenario's own data belongs to the observers and not to any simulated machine, so it
// survives power failures.
class CrashScenario {
 public:
  CrashScenario() = default;
  CrashScenario(const CrashScenario&) = delete;
  CrashScenario& operator=(const CrashScenario&) = delete;
  virtual ~CrashScenario() = default;

  virtual NodeId servers() const { return 1; }
  virtual std::uint32_t clients() const = 0;

  // The number of threads of each server. They listen on ports 0, 1, ...
  // (explore/scenario_processes.h starts them).
  virtual std::uint32_t workers() const { return 1; }
  // Called on each of those threads. The first thread opens, and if necessary recovers, what its
  // node holds, and serves it; the others help to serve it. Does not return. Called again on the
  // same node when its power is back, or when its process is started again. Throws if it cannot be
  // opened.
  virtual Task<> serve(Thread& thread) = 0;
  // The node on which client `number` runs: one of its own, or that of a server. In the latter case
  // the client fails with the server's power and process, like an application that has mapped a
  // server's memory. The node may change after note_failure().
  virtual NodeId node_of_client(std::uint32_t number) const { return servers() + number; }
  bool has_node_of_its_own(std::uint32_t client) const {
    return node_of_client(client) >= servers();
  }
  // The operations of client `number`. Returns when they are done, or when the server is gone. In
  // runs with several failures, called again after each but the last. Throws PlatformError if the
  // client cannot connect.
  virtual Task<> use(Thread& thread, std::uint32_t number) = 0;
  // An upper bound for the number of calls that all clients together make between failure number
  // `failures`, 0 for the start, and the next one; 0 if they make none then. Generated runs draw
  // failures among all of these calls. Each call is told by changed() when it begins and ends.
  virtual std::uint64_t planned_calls(std::size_t failures) const = 0;
  // Waits until clients_at_work() is 0, reads what recovery has left, and checks that the system
  // can be used.
  virtual Task<> inspect(Thread& thread) = 0;

  // `failures` are the failures of servers, of power or of processes, in the order of time. Without
  // any, even if clients or connections failed, nothing may be lost: a problem then breaks all
  // conditions, judged or not.
  virtual Verdict judge(std::span<const ServerFailure> failures, const ToJudge& judged) const = 0;
  // Counts of the events that the history is meant to cause in this run, such as "cleanings".
  virtual std::map<std::string, std::uint64_t, std::less<>> events() const { return {}; }
  // Those of events() that an exploration must meet; their counts are 0 if they have not happened.
  virtual std::span<const Event> expected_events() const { return {}; }

  // True if the clients first fill the system as the history needs. Failures are then tried only
  // after `call` has been called, which happens once, or never if a client dies before.
  virtual bool prepares() const { return false; }
  // A store that is not full after so long never will be: its client may have died.
  virtual Picoseconds longest_preparation() const { return std::chrono::milliseconds(5); }
  void when_prepared(std::function<void()> call) { prepared_ = std::move(call); }

  // Called just before servers fail. If a client shares a server's node and another server takes
  // over (node_of_client()), this function chooses that server.
  virtual void note_failure(const ServerFailure& /*failure*/) {}

  // True if the death of the servers' processes may lose acknowledged changes although memory keeps
  // what was stored: changes that wait in a process to be sent.
  virtual bool loses_with_processes() const { return false; }

  // The calls of all clients and the inspector.
  virtual std::vector<CrashCall> calls() const { return {}; }

  // Describes the current state of the run, as far as the service can see it. By default the counts
  // of events().
  virtual void describe(SystemState& state) const {
    for (const auto& [name, count] : events()) state.add(name, magnitude(count));
  }
  // Calls `look` whenever describe() may have changed.
  void watch(std::function<void()> look) { look_ = std::move(look); }

  // Number of times that a client has been told of a change that is not acknowledged yet. Such a
  // promise, given only to an observer, is the easiest to break.
  virtual std::uint64_t early_observations() const { return 0; }

  // Number of steps of cleaning logs or of growing that the servers have begun since their last
  // start. Recovery treats a failure in each of these steps differently, and few failures happen to
  // hit one.
  virtual std::uint64_t steps_begun() const { return 0; }

  // True if a client that is alive and connected, or the inspector, waits for an operation.
  virtual bool waits_for_operation() const { return false; }

  // True once each of the servers has opened what it holds (note_serving()) since its last
  // stop_serving(): the first one to do so must not hide that others still recover.
  bool serves(Time now) const {
    for (NodeId server = 0; server < servers(); ++server) {
      if (!serves(server, now)) return false;
    }
    return true;
  }
  bool serves(NodeId server, Time now) const {
    const auto since = serving_since_.find(server);
    return since != serving_since_.end() && since->second <= now;
  }
  void stop_serving(NodeId server) { serving_since_.erase(server); }
  void stop_serving() { serving_since_.clear(); }  // all of them

  // --- for many inspections of one failure (explore/recovery.h)

  // To be called when the servers have failed and no client is left: saves what the observers know.
  void take_snapshot() {
    problem_at_snapshot_ = problem_;
    snapshot_observations();
  }
  // Drops everything noted since then.
  void restore_snapshot() {
    problem_ = problem_at_snapshot_;
    restore_observations();
  }
  // Everything noted since take_snapshot(), except times. Inspections after the same failure with
  // equal observations get the same verdict.
  std::string observations() const { return problem_ + '\0' + observations_since_snapshot(); }
  // The state outside of persistent memory on which serve() and inspect() depend.
  virtual std::string state_outside_memory() const { return {}; }

  // Notes why the system could not be used; only the first reason is kept. It counts as the loss of
  // everything.
  void note_problem(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  const std::string& problem() const { return problem_; }

  // For inspect(): the number of clients that have not noticed the failure yet.
  std::uint32_t clients_at_work() const { return clients_at_work_; }
  // Counts a client for its lifetime, however it ends.
  class AtWork : public ScopedCount {
   public:
    explicit AtWork(CrashScenario& scenario) : ScopedCount(scenario.clients_at_work_) {}
  };

 protected:
  void changed() const {
    if (look_) look_();
  }
  // serve() calls this when it has opened what its thread's node holds.
  void note_serving(const Thread& thread) {
    serving_since_[thread.node.id()] = Executor::current().now();
  }
  // Has an effect only once: after a recovery nobody may be waiting for it anymore.
  void note_prepared() {
    if (const auto call = std::exchange(prepared_, {})) call();
  }

  // The scenario's part of take_snapshot(), restore_snapshot() and observations().
  virtual void snapshot_observations() = 0;
  virtual void restore_observations() = 0;
  virtual std::string observations_since_snapshot() const = 0;

 private:
  std::string problem_;
  std::string problem_at_snapshot_;
  std::uint32_t clients_at_work_ = 0;
  std::function<void()> look_;
  std::map<NodeId, Time> serving_since_;  // by server, those that serve
  std::function<void()> prepared_;
};

// Makes identical runs.
using CrashHistory = std::function<std::unique_ptr<CrashScenario>()>;

// Short histories that a service numbers from 0, for explorations of every one of them.
struct SequenceKind {
  std::uint32_t length = 1;  // operations
  // Each operation is that of another client, all begin at the same time, and they have to do with
  // the same objects. Otherwise one client does them one after the other.
  bool at_once = false;
};

// A history of few operations, one of the many of Service::sequences.
struct CrashSequence {
  std::string name;  // the operations
  CrashHistory make;
};

}  // namespace perdura::services
