// What a service provides so that its systems can be explored under failures (bench/crash):
// small histories, and a judge of what is found after a failure. The exploration provides the rest:
// the crash points, the crash images, the restart, and which runs can be skipped.
//
// In a run, nodes 0, 1, ... hold what must survive (CrashScenario::servers()). The clients' nodes
// follow. The last node is that of the inspector, a client that connects when the power is back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "platform/pmem/model/persistence.h"
#include "services/event.h"
#include "services/system_state.h"

namespace perdura::services {

// Which system to run, and how.
struct CrashSetup {
  pmem::PersistenceModel model;
  GivenParameters parameters{};  // of the system, in addition to those that make its store small
  // Make changes persistent by the method that the chooser finds for the model, instead of the
  // paper's; for a system that can (SystemInfo::chooses_method).
  bool correct = false;
  std::uint64_t seed = 1;  // seeds the clients' operations
  // Whether, in generated runs, what a device has received may be late in memory, so that a WRITE
  // may complete before others can see it.
  bool late_placements = false;
};

// The roles of the clients in a history. A service has several schedules if one does not show
// everything.
struct CrashSchedule {
  std::string_view name;  // lower case with dashes
  std::string_view what;  // a short description
};

// Which guarantees a run kept (services/guarantee.h). A field is empty if the guarantee was kept;
// else it says why not, and its last line names what is wrong. The service's page says what each
// guarantee means for it.
struct CrashVerdict {
  std::string durable;       // nothing is lost that any completed operation has reported
  std::string acknowledged;  // the same for changes alone
  std::string observed;      // the same for reads alone
  std::string ordered;       // only the last changes are lost
  std::string atomic;        // the state found is one that was possible
  // What each of these losses is about, if it is about one of several objects (CrashCall).
  struct About {
    std::optional<std::uint64_t> durable{}, acknowledged{}, observed{}, ordered{}, atomic{};
  };
  About about{};

  // What another one of several independent objects kept, or did not.
  void add(const CrashVerdict& other) {
    add(durable, about.durable, other.durable, other.about.durable);
    add(acknowledged, about.acknowledged, other.acknowledged, other.about.acknowledged);
    add(observed, about.observed, other.observed, other.about.observed);
    add(ordered, about.ordered, other.ordered, other.about.ordered);
    add(atomic, about.atomic, other.atomic, other.about.atomic);
  }
  // Where nothing may be lost, whatever is lost breaks all guarantees.
  void let_nothing_be_lost() {
    acknowledged = observed = ordered = atomic = durable;
    about.acknowledged = about.observed = about.ordered = about.atomic = about.durable;
  }

 private:
  static void add(std::string& why, std::optional<std::uint64_t>& about, const std::string& other,
                  const std::optional<std::uint64_t>& of_other) {
    if (!why.empty() || other.empty()) return;
    why = other;
    about = of_other;
  }
};

// A failure that may lose something: of all servers, or of one of them alone.
struct ServerFailure {
  Time when{};
  std::optional<NodeId> alone{};
};
inline std::vector<Time> times_of(std::span<const ServerFailure> failures) {
  std::vector<Time> times;
  for (const ServerFailure& failure : failures) times.push_back(failure.when);
  return times;
}

// What a client called, and what it was told; for an explanation of what a failure has undone.
struct CrashCall {
  // A value that a client wrote or was told: by what it is known, and its bytes, by which it is
  // found in memory.
  struct Value {
    std::uint64_t version = 0;
    std::vector<std::byte> bytes;
  };
  std::uint32_t client = 0;  // the inspector follows the clients
  // Calls of different objects, such as keys, have nothing to do with each other.
  std::uint64_t object = 0;
  Time start{};
  Time end = Time::max();  // if it was answered
  bool changes = false;    // or it only observes
  std::string what;        // "put of version 3 of key 0"
  std::string told;        // "done", "version 3"; empty if it was not answered
  std::vector<Value> values;

  bool answered() const { return end != Time::max(); }
};

// Which of these are still to be judged: one that was found broken in another run of the same
// exploration stays so.
struct CrashLevels {
  bool durable = true;
  bool acknowledged = true;
  bool observed = true;
  bool ordered = true;
  bool atomic = true;
  // To be called now and then while judging takes long. An exception that it throws, such as that
  // of an interrupted program, ends the exploration; judge_history() does so.
  std::function<void()> attend{};

  bool any() const { return durable || acknowledged || observed || ordered || atomic; }
};

// Adds one to a count as long as it lives.
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

  // Threads of each server. They listen at ports 0, 1, ... (bench/crash/servers.h starts them).
  virtual std::uint32_t workers() const { return 1; }
  // Called on each of those threads. The first opens, and if necessary recovers, what its node
  // holds, and serves it; the others help to serve it. Does not return. Called again on the same
  // node when its power is back, or when its process is started again.
  // Throws if it cannot be opened.
  virtual Task<> serve(Thread& thread) = 0;
  // The node on which client `number` runs: one of its own, or that of a server, whose power and
  // process it then shares, as an application does that has a server's memory mapped. It may be
  // another one after note_failure().
  virtual NodeId node_of_client(std::uint32_t number) const { return servers() + number; }
  bool has_node_of_its_own(std::uint32_t client) const {
    return node_of_client(client) >= servers();
  }
  // The operations of client `number`. Returns when they are done, or when the server is gone. In
  // runs of several failures, called again after each but the last.
  // Throws PlatformError if the client cannot connect.
  virtual Task<> use(Thread& thread, std::uint32_t number) = 0;
  // Reads what recovery has left once clients_at_work() is 0, and checks that the system can be
  // used.
  virtual Task<> inspect(Thread& thread) = 0;

  // `failures` are those of servers, by power or as processes, in the order of time. If there was
  // none, be it that a client or a connection failed, everything that is wrong goes to `durable`.
  virtual CrashVerdict judge(std::span<const ServerFailure> failures,
                             const CrashLevels& levels) const = 0;
  // How often what the history is about has happened in this run, such as "cleanings".
  virtual std::map<std::string, std::uint64_t, std::less<>> events() const { return {}; }
  // Those of them that an exploration must meet, with their counts 0 if they have not happened.
  virtual std::span<const Event> expected_events() const { return {}; }

  // Whether the clients first fill the system with what the history needs. Failures are tried from
  // then on, when `call` is called, once, or never if a client dies before.
  virtual bool prepares() const { return false; }
  void when_prepared(std::function<void()> call) { prepared_ = std::move(call); }

  // Servers are about to fail; called before they are gone. Where another one takes the place of
  // the one that clients share (node_of_client()), it is this that decides which.
  virtual void note_failure(const ServerFailure& /*failure*/) {}

  // Whether the death of the servers' processes may take what was acknowledged, though memory keeps
  // what was stored: where it waits in a process to be sent.
  virtual bool loses_with_processes() const { return false; }

  // What all clients and the inspector have called.
  virtual std::vector<CrashCall> calls() const { return {}; }

  // What the run looks like now, as far as the service can see it. By default how often each of
  // events() has occurred.
  virtual void describe(SystemState& state) const {
    for (const auto& [name, count] : events()) state.add(name, magnitude(count));
  }
  // Calls `look` whenever describe() may tell something new.
  void watch(std::function<void()> look) { look_ = std::move(look); }

  // How often a client has been told what is not acknowledged yet. A promise that only an observer
  // was given is the easiest to break.
  virtual std::uint64_t early_observations() const { return 0; }

  // How many steps of cleaning logs or of growing the servers have begun since they were started
  // last. Recovery treats a failure in each of these steps in its own way, and few failures happen
  // to meet one.
  virtual std::uint64_t steps_begun() const { return 0; }

  // Whether a client that is alive and connected, or the inspector, waits for an operation.
  virtual bool waits_for_operation() const { return false; }

  // Whether all servers that were started last have recovered what they hold, and serve it.
  bool serves(Time now) const { return serving_since_ && *serving_since_ <= now; }
  void stop_serving() { serving_since_.reset(); }

  // --- for many inspections of one failure (bench/crash/image_exploration.h)

  // Remembers what the observers know when the servers have failed and no client is left, and
  // forgets everything that they have noted since then.
  void keep() {
    kept_problem_ = problem_;
    keep_observations();
  }
  void return_to_kept() {
    problem_ = kept_problem_;
    return_to_observations();
  }
  // What has been noted since keep(), times apart. Inspections after the same failure for which it
  // is equal are judged alike.
  std::string found() const { return problem_ + '\0' + found_since(); }
  // What serve() and inspect() depend on besides persistent memory.
  virtual std::string kept_apart() const { return {}; }

  // Notes why the system could not be used; only the first reason is kept. It counts as the loss of
  // everything.
  void note_problem(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  const std::string& problem() const { return problem_; }

  // For inspect(): the number of clients that have not noticed the failure yet.
  std::uint32_t clients_at_work() const { return clients_at_work_; }
  // Counts a client as long as it lives, however it ends.
  class AtWork : public ScopedCount {
   public:
    explicit AtWork(CrashScenario& scenario) : ScopedCount(scenario.clients_at_work_) {}
  };

 protected:
  void changed() const {
    if (look_) look_();
  }
  // To be called by serve() when it has opened what its node holds.
  void note_serving() { serving_since_ = Executor::current().now(); }
  // Once: whoever waits for it may be gone when a system recovers.
  void note_prepared() {
    if (const auto call = std::exchange(prepared_, {})) call();
  }

  // Of keep(), return_to_kept() and found(), what the scenario itself has noted.
  virtual void keep_observations() { throw std::logic_error("it can be inspected once only"); }
  virtual void return_to_observations() {}
  virtual std::string found_since() const { return {}; }

 private:
  std::string problem_;
  std::string kept_problem_;
  std::uint32_t clients_at_work_ = 0;
  std::function<void()> look_;
  std::optional<Time> serving_since_;
  std::function<void()> prepared_;
};

// Makes identical runs.
using CrashHistory = std::function<std::unique_ptr<CrashScenario>()>;

// A history of few operations, one of many (Service::sequences).
struct CrashSequence {
  std::string name;  // the operations
  CrashHistory make;
};

}  // namespace perdura::services
