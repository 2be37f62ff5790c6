// A run of a generated scenario on the simulation in which everything that may go either way is
// drawn from a tape: what the clients do, when threads stall, which clients die, when the servers
// fail, how, and which image each power failure leaves.
//
// After each failure but the last the clients connect again and go on. After the last one an
// inspector reads what is left. Streams of the tape:
//
//   clients   what they do (services::Service::generated_scenario())
//   stalls    which threads stand still, when and for how long
//   drawn     which of the next three are drawn, as a set of bits
//   messages  by how much each message, answer and receive completion is late
//   devices   by how much each placement in the servers' memory is late
//   tasks     which ready task of a thread is next, wherever there are several
//   deaths    which clients' processes die or connections break, and when
//   failures  how many there are, when, and of which kind
//   image-N   what the Nth power failure leaves of persistent memory
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/model/tape.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"
#include "services/service.h"

namespace perdura::bench {

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

 private:
  enum class Kind : std::uint8_t { power, process };

  void begin();
  void end_clients();
  void draw_stalls();
  void draw_schedule();
  void note_moment();
  void note_moment_before(Time when);
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
  std::vector<std::pair<Time, std::string>> events_;
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
