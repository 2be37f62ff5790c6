// A run of a generated scenario on the simulation in which everything that may go either way is
// drawn from a tape: what the clients do, when threads stall, which clients die, when the servers
// fail, how, and which image each power failure leaves.
//
// After each failure but the last the clients connect again and go on. After the last one an
// inspector reads what is left. Streams of the tape, of which each holds one thing that may be left
// out (its first choice is 0), so that what remains is not shifted:
//
//   store      the servers and what they hold (services::Service::generated_scenario())
//   filling    whether that is almost full from the beginning, and clients get what fills it
//   fences     whether those of the processors take long
//   client-N   what client N does
//   stall-N    a thread that stands still: which one, when and for how long
//   death-N    a client's process that dies or connection that breaks: which one, and when
//   failure-N  a failure of the servers: of which kind, and when; a moment follows the beginning or
//              end of an operation, so that it stays what it is if other operations are left out
//   image-N    what that failure of power leaves of persistent memory; 0 keeps the most
//
//   drawn       which of the next two are drawn, as a set of bits
//   messages    by how much each message, answer and receive completion is late
//   placements  by how much each placement in the servers' memory is late
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "bench/crash/explanation/lost_value.h"
#include "bench/crash/patience.h"
#include "platform/pmem/model/tape.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"
#include "services/service.h"

namespace perdura::bench {

// Which choice of a stream failure-N says how many operations have begun or ended before it.
inline constexpr std::size_t kMomentOfFailure = 2;

// Of GeneratedRun::happened().
inline constexpr std::string_view kPowerFailures = "power failures";

// What GeneratedRun draws of whom, for those who decide it stream by stream.
enum class StreamOf : std::uint8_t { clients, schedule, image, rest };
StreamOf stream_of(std::string_view name);
// The choices of `rest` in a run in which messages, devices and tasks are drawn, nothing stalls,
// nobody dies, and the servers' power fails once, at `when` or as late as can be.
pmem::Tape::Streams one_power_failure(Time when);

class GeneratedRun {
 public:
  GeneratedRun(const services::ServedSystem& system, const sim::Profile& profile,
               const services::CrashSetup& setup, pmem::Tape& tape);
  GeneratedRun(const GeneratedRun&) = delete;
  GeneratedRun& operator=(const GeneratedRun&) = delete;

  // `observer` is told what happens; it must outlive this. Must be called before run().
  void observe(sim::RunObserver& observer) { platform_->observe(observer); }

  // In place of run(): ends it at the first failure, and lists the moments before that at which a
  // failure may leave something else than at others. Where nothing that may survive changes and no
  // client goes on, the last instant stands for all. Those before `begins` first says true are left
  // out.
  void list_moments(std::function<bool()> begins);
  const std::set<Time>& moments() const { return moments_; }

  // Runs it to its end, and judges it. It runs once.
  services::CrashVerdict run(const services::CrashLevels& levels = {});

  std::uint32_t clients() const { return scenario_->clients(); }
  // The number of failures that happened.
  std::uint32_t failures() const { return failures_; }
  // What happened in the run besides operations, one line each, in the order of time.
  std::string events() const;
  // How often the named events happened that make a run worth its time: those of the service
  // (services::CrashScenario::events()) and those of the run itself.
  std::map<std::string, std::uint64_t> happened() const;
  // Digests of the states that the system was in (services::SystemState) when operations began and
  // ended, and when something failed.
  const std::unordered_set<std::uint64_t>& states() const { return states_; }
  // The run as its scenario saw it, for an explanation; without a title and a conclusion.
  ExplainedRun story() const;

 private:
  enum class Kind : std::uint8_t { power, process };
  // After so many operations have begun or ended since the servers began to run.
  struct Moment {
    std::size_t changes = 0;
    Picoseconds delay{};
  };
  struct PlannedFailure {
    std::uint32_t number = 0;  // of its streams
    Kind kind{};
    Moment moment;
  };
  struct PlannedDeath {
    NodeId client = 0;
    bool connection = false;   // only its connection breaks
    std::size_t failures = 0;  // of the servers that come before
    Moment moment;
  };

  using Events = std::vector<std::pair<Time, std::string>>;

  static Moment drawn_moment(pmem::Choices& choices);
  std::vector<PlannedFailure> drawn_failures();
  Events events_in_order() const;
  void begin();
  void end_clients();
  void draw_stalls();
  void draw_schedule();
  void note_moment();
  void note_moment_before(Time when);
  void draw_deaths();
  void start();
  void at(const Moment& moment, std::function<void()> then);
  void note_change();
  void end_client(const PlannedDeath& death);
  void fail(const PlannedFailure& failure);
  fabric::Port port_of(NodeId client) const;  // since the last failure
  void start_servers();
  void start_clients();
  void start_inspector();
  Task<> serve(Thread& thread);
  Task<> use(Thread& thread, std::uint32_t number);
  Task<> inspect(Thread& thread);
  void note(Time when, std::string what);
  void look(std::string_view at);  // notes the state that the system is in
  NodeId first_client() const { return scenario_->servers(); }
  NodeId inspector() const { return scenario_->servers() + scenario_->clients(); }

  pmem::Tape& tape_;
  bool late_placements_;
  std::vector<PlannedFailure> planned_;
  std::vector<PlannedDeath> deaths_;
  std::unique_ptr<services::CrashScenario> scenario_;
  Patience patience_;
  std::uint32_t failures_ = 0;
  // A process that dies leaves what is visible, so for those who judge only the power fails.
  std::vector<Time> power_failures_;
  bool power_failed_last_ = false;
  std::vector<Time> all_failures_;
  Events events_;
  std::map<std::string, std::uint64_t> happened_;
  std::unordered_set<std::uint64_t> states_;
  std::size_t changes_ = 0;  // operations begun or ended since the servers began to run
  std::vector<std::pair<Moment, std::function<void()>>> awaited_;
  bool disturbed_ = false;         // clients may fail to connect
  bool ready_to_inspect_ = false;  // the last failure has been, or none is planned
  std::string client_problem_;
  std::function<bool()> moments_begin_;  // null: they are not listed
  std::optional<Time> moments_from_;
  std::uint64_t client_steps_ = 0;
  std::set<Time> moments_;
  // Declared last, so destroyed first: its threads use the members above.
  std::unique_ptr<sim::SimPlatform> platform_;
};

}  // namespace perdura::bench
