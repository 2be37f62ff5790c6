// A run of a generated scenario on the simulation in which everything that may go either way is
// drawn from a tape: what the clients do, when threads stall, which clients die, when the servers
// fail, how, and which image each power failure leaves.
//
// After each failure but the last the clients connect again and go on. After the last one an
// inspector reads what is left. Streams of the tape:
//
//   clients   what they do (services::Service::generated_scenario())
//   stalls    which threads stand still, when and for how long
//   deaths    which clients' processes die or connections break, and when
//   failures  how many there are, when, and of which kind
//   image-N   what the Nth power failure leaves of persistent memory
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/crash/explanation/lost_value.h"
#include "platform/pmem/model/tape.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"
#include "services/service.h"

namespace perdura::bench {

class GeneratedRun {
 public:
  GeneratedRun(const services::ServedSystem& system, const sim::Profile& profile,
               const services::CrashSetup& setup, pmem::Tape& tape);
  GeneratedRun(const GeneratedRun&) = delete;
  GeneratedRun& operator=(const GeneratedRun&) = delete;

  // `observer` is told what happens; it must outlive this. Must be called before run().
  void observe(sim::RunObserver& observer) { platform_->observe(observer); }

  // Runs it to its end, and judges it.
  services::CrashVerdict run(const services::CrashLevels& levels = {});

  // The number of failures that happened.
  std::uint32_t failures() const { return failures_; }
  // What happened in the run besides operations, one line each, in the order of time.
  std::string events() const;
  // The run as its scenario saw it, for an explanation; without a title and a conclusion.
  ExplainedRun story() const;

 private:
  enum class Kind : std::uint8_t { power, process };

  using Events = std::vector<std::pair<Time, std::string>>;

  Events events_in_order() const;
  void draw_stalls();
  void draw_deaths();
  void schedule_failure();
  void fail(Kind kind);
  void restart();
  fabric::Port port_of(NodeId client) const;  // since the last failure
  void start_servers();
  void start_clients();
  void start_inspector();
  Task<> serve(Thread& thread);
  Task<> use(Thread& thread, std::uint32_t number);
  Task<> inspect(Thread& thread);
  void note(Time when, std::string what);
  NodeId first_client() const { return scenario_->servers(); }
  NodeId inspector() const { return scenario_->servers() + scenario_->clients(); }

  pmem::Tape& tape_;
  std::uint32_t failures_planned_;
  std::unique_ptr<services::CrashScenario> scenario_;
  std::uint32_t failures_ = 0;
  // A process that dies leaves what is visible, so for those who judge only the power fails.
  std::vector<Time> power_failures_;
  std::vector<Time> all_failures_;
  Events events_;
  bool disturbed_ = false;         // clients may fail to connect
  bool ready_to_inspect_ = false;  // the last failure has been, or none is planned
  std::string client_problem_;
  // Declared last, so destroyed first: its threads use the members above.
  std::unique_ptr<sim::SimPlatform> platform_;
};

}  // namespace perdura::bench
