// A run of a generated scenario on the simulation in which everything that may go either way is
// drawn from a tape: what the clients do, when threads stall, which clients die, when the servers
// fail, how, and which image each power failure leaves.
//
// After each failure but the last the clients connect again and go on. Where there are several
// servers, one of them may fail alone, and stay away while the others and their clients go on, or
// fail, too. After the last failure an inspector reads what is left.
//
// The tape has a stream for each thing that may be left out of a run, which is done by making the
// stream's first choice 0. That does not shift the choices of any other stream:
//
//   store      the servers and what they hold (services::Service::generated_scenario())
//   lengths    whether what is stored has lengths around boundaries (services/boundaries.h)
//   world      how large a region is, and how many copies it has (services/memory)
//   promoted   which copy is promoted for the inspection (services/memory)
//   moves      which copies are promoted after failures, so that the application goes on with them
//   patience   for how long, and how often, a copy may not answer
//   filling    whether the store is almost full from the beginning, and clients get what fills it
//   fences     whether the fences of CPUs take long
//   bus        whether devices read memory so slowly that READs are torn
//   client-N   what client N does
//   stall-N    a thread that stands still: which one, when and for how long
//   death-N    a client's process that dies or connection that breaks: which one, and when
//   failure-N  a failure of the servers: its kind and its time, which is given relative to the
//              beginning or end of an operation, so that it keeps its place if other operations
//              are left out. Half of the choices or more are of any operation that clients plan
//              (services::CrashScenario::planned_calls()), with equal probability
//   apart-N    whether that failure is of one server alone, of which, and for how long it is away
//   image-N    what that failure of power leaves of persistent memory; 0 keeps the most
//
//   drawn       which of the next two are drawn, as a set of bits
//   messages    by how much each message, answer and receive completion is late
//   placements  by how much each placement in the servers' memory is late
//   paused      which of the next two are drawn, as a set of bits
//   pauses      for how long a thread stands still after each operation that it posts
//   yields      for how long it stands still wherever a task lets the others of its thread run
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "explore/crash_point_list.h"
#include "explore/explanation/lost_value.h"
#include "explore/plan.h"
#include "explore/recovery.h"
#include "explore/run_record.h"
#include "explore/scenario_run.h"
#include "explore/triggers.h"
#include "platform/pmem/model/tape.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"
#include "services/service.h"

namespace perdura::explore {

// Keys of GeneratedRun::happened(). The last four count failures of servers by the share of the
// calls planned since the failure before (services::CrashScenario::planned_calls()) that had been
// made.
inline constexpr std::string_view kPowerFailures = "power failures";
inline constexpr std::array<std::string_view, 4> kFailuresInQuarters{
    "failures in the first quarter of calls", "failures in the second quarter of calls",
    "failures in the third quarter of calls", "failures in the last quarter of calls"};

class GeneratedRun {
 public:
  // `profile` and `tape` must outlive this.
  GeneratedRun(const services::ServedSystem& system, const sim::Profile& profile,
               const services::CrashSetup& setup, pmem::Tape& tape);
  GeneratedRun(const GeneratedRun&) = delete;
  GeneratedRun& operator=(const GeneratedRun&) = delete;

  // `observer` is told what happens; it must outlive this. Must be called before run().
  void observe(sim::RunObserver& observer) { platform_->observe(observer); }

  // Instead of run(): runs until the failure that follows `failures_before` others, and lists the
  // crash points since the one before it (CrashPointList), but none before `begins` first returns
  // true.
  const std::set<Time>& list_crash_points(std::function<bool()> begins,
                                          std::uint32_t failures_before = 0);

  // Runs to the end and judges what was found. Must be called once.
  services::Verdict run(const services::ToJudge& judged = services::ToJudge::all());

  // After run(): the choices of the same run, with each server failure re-expressed relative to the
  // beginning or end of an operation before it. So shrinking can drop earlier operations, or change
  // their times, without moving the failure.
  pmem::Tape::Streams anchored() const;

  // Makes run() keep what the last failure of power leaves, for try_images(). Must be called before
  // run().
  void keep_images() { keeps_images_ = true; }
  struct ImagesTried {
    std::uint64_t recoveries = 0;
    // The choices of a run whose power failure leaves the first image for which `fails` returned
    // true. No client does anything after it, and there is no further failure.
    std::optional<pmem::Tape::Streams> failing{};
  };
  // After run(): recovers from up to `most` images of that failure
  // (platform/pmem/model/lazy_images.h) and inspects each, until `fails` returns true for a
  // verdict. No other member may be called afterwards.
  ImagesTried try_images(std::uint64_t most,
                         const std::function<bool(const services::Verdict&)>& fails);

  std::uint32_t clients() const { return scenario_->clients(); }
  NodeId servers() const { return scenario_->servers(); }
  // The number of failures that happened.
  std::uint32_t failures() const { return failures_; }
  // The events of the run besides operations, one line each, in the order of time.
  std::string events() const { return record_.text(); }
  // How often each event happened that exploration looks for, by name: those of the service
  // (services::CrashScenario::events()) and those of the run itself.
  std::map<std::string, std::uint64_t> happened() const;
  // Digests of the states that the system was in (services::SystemState) when operations began and
  // ended, and when something failed.
  const std::unordered_set<std::uint64_t>& states() const { return record_.states(); }
  // The run as its scenario saw it, for an explanation; without a title and a conclusion.
  ExplainedRun story() const;

 private:
  // Persistent memory as the last failure of power has left it.
  struct Left {
    std::size_t failure = 0;                               // index in the plan's failures
    std::vector<services::ServerFailure> losing_failures;  // losing_failures_ at that time
    LeftMemory memory;
  };
  struct Client {
    // The port of its current thread. Threads from before a failure of all servers may still run,
    // if they have not noticed it yet.
    fabric::Port port = 0;
    bool is_at_work = false;
    std::size_t turns = 0;  // number of epochs that it has yet to begin
  };

  // Before the run.
  void expect_events();
  void stall_threads();
  void begin();

  // Epochs: what happens between two failures of servers.
  void start_all();
  void go_on_without(NodeId server);
  void return_alone(NodeId server);
  void begin_epoch();
  void await_what_is_planned();
  void note_change();
  bool awaits_steps() const;
  void note_steps();
  void end_clients();
  void start_client(std::uint32_t number);
  Task<> take_turns(Thread& thread, std::uint32_t number);
  bool can_inspect() const;

  // Failures.
  void end_client(const PlannedDeath& death);
  void break_connections(const Link& link);
  std::vector<fabric::Port> ports_of(NodeId node) const;
  void fail(const PlannedFailure& failure);
  void note_failure(const PlannedFailure& failure);
  void restart(const PlannedFailure& failure, std::span<const NodeId> failing);
  bool is_last_of_power() const;
  bool is_any_away() const;
  void keep_what_is_left();
  pmem::Tape::Streams with_image(const pmem::LazyImages& images) const;

  Time now() const { return platform_->engine().now(); }
  void note_state(std::string_view event);

  pmem::Tape& tape_;
  const sim::Profile profile_;
  Plan plan_;
  std::unique_ptr<services::CrashScenario> scenario_;
  std::uint32_t failures_ = 0;
  // By server: while it is away, the number of the failure that took it down; otherwise 0.
  std::vector<std::uint32_t> away_;
  std::vector<Client> clients_;
  // The failures that may lose something, for CrashScenario::judge(): all failures of power. A
  // process that dies leaves all that was visible, so its death is among them only if the scenario
  // says so.
  std::vector<services::ServerFailure> losing_failures_;
  bool power_failed_last_ = false;
  std::vector<Time> all_failures_;
  RunRecord record_;
  std::uint64_t early_ = 0;                                // early observations in the whole run
  std::uint64_t steps_ = 0;                                // steps that the servers have begun
  Time planned_at_{};                                      // await_what_is_planned() has run
  std::map<std::uint32_t, Trigger> triggers_of_failures_;  // by number
  bool disturbed_ = false;                                 // clients may fail to connect
  bool ready_to_inspect_ = false;  // the last failure has been, or none is planned
  bool keeps_images_ = false;
  std::optional<Left> left_;
  std::optional<CrashPointList> crash_points_;  // if they are listed
  // Declared last, so destroyed first: its threads use the members above.
  std::unique_ptr<ScenarioRun> run_;
  sim::SimPlatform* platform_;  // that of `run_`
  Triggers triggers_;
};

}  // namespace perdura::explore
