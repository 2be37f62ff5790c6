// Executes one plan (plan.h) of a scenario (services/crash.h) on the simulation: starts the servers
// and clients, lets happen what the plan says, restarts what has failed, and records what happened.
// After the last failure an inspector reads what is left.
//
// After each failure but the last the clients connect again and go on, if the plan says so. Where
// there are several servers, one of them may fail alone, and stay away while the others and their
// clients go on, or fail, too.
//
//   ScenarioRun run(*scenario, profile, model, failing({}, Microseconds(12)), least);
//   const services::Verdict verdict = run.run();
//
// Two functions may be called instead of run(). list_crash_points() finds the times at which a
// failure would make a difference. run_until_down() stops where the last failure has taken all
// servers down; a caller can then recover from many of the images that it leaves (recovery.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "explore/crash_point_list.h"
#include "explore/explanation/lost_value.h"
#include "explore/plan.h"
#include "explore/recovery.h"
#include "explore/run_record.h"
#include "explore/scenario_processes.h"
#include "explore/triggers.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

// Some keys of ScenarioRun::happened(). The last four sort failures of servers by progress: the
// share of the calls planned since the previous failure (services::CrashScenario::planned_calls())
// that clients had made when the failure happened.
inline constexpr std::string_view kPowerFailures = "power failures";
inline constexpr std::array<std::string_view, 4> kFailuresInQuarters{
    "failures in the first quarter of calls", "failures in the second quarter of calls",
    "failures in the third quarter of calls", "failures in the last quarter of calls"};

class ScenarioRun {
 public:
  // Returns the choices that select which image a power failure leaves. The choices must outlive
  // the run.
  using ImageOf = std::function<pmem::Choices&(const PlannedFailure&)>;

  // `scenario` and `profile` must outlive this.
  ScenarioRun(services::CrashScenario& scenario, const sim::Profile& profile,
              const pmem::PersistenceModel& model, Plan plan, ImageOf image);
  ScenarioRun(const ScenarioRun&) = delete;
  ScenarioRun& operator=(const ScenarioRun&) = delete;

  // `observer` is told what happens; it must outlive this. Must be called before the run.
  void observe(sim::RunObserver& observer) { platform_->observe(observer); }
  // Makes the scenario note as a problem whatever a server cannot open, from the beginning of the
  // run. Without this call it does so only after the first failure
  // (ScenarioProcesses::note_problems()).
  void note_problems() { processes_->note_problems(); }

  // Exactly one of the next three must be called, once.

  // Runs to the end and judges what was found.
  services::Verdict run(const services::ToJudge& judged = services::ToJudge::all());
  // Runs until the failure that follows `failures_before` others; if no such failure is planned,
  // runs until nothing is left to do. Returns the crash points between the previous failure and
  // that one, each as the `after` that failing() takes. Those before `begins` first returns true
  // are left out.
  std::vector<Picoseconds> list_crash_points(CrashPointList::Which which,
                                             std::function<bool()> begins = {},
                                             std::uint32_t failures_before = 0);
  // Runs until the last failure, which must be a power failure of all servers. The servers stay
  // down, and clients that still run a while after the failure are killed. Calls `look` at the
  // failure, while the power is still on.
  void run_until_down(const std::function<void(sim::SimPlatform&)>& look);

  // Makes run() keep what the last failure of power leaves, for try_images(). Must be called before
  // run().
  void keep_images() { keeps_images_ = true; }
  struct ImagesTried {
    std::uint64_t recoveries = 0;
    // The first image for which `fails` returned true, if there was one: the failure that left it,
    // as an index in the plan, and the image's choices, those of all servers one after the other.
    std::optional<std::size_t> failure{};
    std::vector<pmem::ImageSpace::Choice> image{};
  };
  // Must be called after run(). Recovers from up to `most` images of the last power failure and
  // inspects each, until `fails` returns true for a verdict. No other member may be called
  // afterwards.
  ImagesTried try_images(std::uint64_t most,
                         const std::function<bool(const services::Verdict&)>& fails);

  const Plan& plan() const { return plan_; }
  // The time from which the plan's delays were counted after the last failure that happened. Valid
  // only after the run.
  Time planned_at() const { return planned_at_.value(); }
  // The number of failures of servers that happened, and the time of the last failure of anything.
  // A connection that was to break where there was none is no failure.
  std::uint32_t failures() const { return failures_; }
  std::optional<Time> failed_at() const { return failed_at_; }
  // The failures that may lose something, for CrashScenario::judge(): all failures of power. A
  // process that dies leaves all that was visible, so its death is among them only if the scenario
  // says so.
  std::span<const services::ServerFailure> losing_failures() const { return losing_failures_; }
  // Maps the number of a server failure to when it happened: after how many beginnings and ends of
  // operations, and how long after the last of them. A failure that came too late for such a
  // trigger is absent.
  const std::map<std::uint32_t, Trigger>& triggers_of_failures() const { return happened_after_; }
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

  // These functions are called before the run.
  void expect_events();
  void stall_threads();
  void begin();

  // Epochs: what happens between two failures of servers.
  void start_all();
  void go_on_without(std::span<const NodeId> servers);
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
  void fail_power(const PlannedFailure& failure, std::span<const NodeId> failing);
  bool of_all(std::span<const NodeId> servers) const;
  void restart(const PlannedFailure& failure, std::span<const NodeId> failing);
  bool is_last_of_power() const;
  bool is_any_away() const;
  void keep_what_is_left();

  Time now() const { return platform_->engine().now(); }
  void note_state(std::string_view event);

  services::CrashScenario& scenario_;
  const sim::Profile& profile_;
  Plan plan_;
  ImageOf image_;
  std::uint32_t failures_ = 0;
  // For each server: while it is away, the value that failures_ had when it failed; otherwise 0.
  std::vector<std::uint32_t> away_;
  std::vector<Client> clients_;
  std::vector<services::ServerFailure> losing_failures_;
  bool power_failed_last_ = false;
  std::vector<Time> all_failures_;
  std::optional<Time> failed_at_;
  RunRecord record_;
  std::uint64_t early_ = 0;         // early observations in the whole run
  std::uint64_t steps_ = 0;         // steps that the servers have begun
  std::optional<Time> planned_at_;  // await_what_is_planned() has run
  std::map<std::uint32_t, Trigger> happened_after_;
  bool disturbed_ = false;         // clients may fail to connect
  bool ready_to_inspect_ = false;  // no further failure of servers is planned
  bool keeps_images_ = false;
  std::optional<Left> left_;
  std::optional<CrashPointList> crash_points_;     // if they are listed
  std::function<void(sim::SimPlatform&)> look_{};  // at the failure that nobody recovers from
  // Declared last, so destroyed first: its threads use the members above.
  std::unique_ptr<ScenarioProcesses> processes_;
  sim::SimPlatform* platform_;  // that of `processes_`
  Triggers triggers_;
};

}  // namespace perdura::explore
