// The processes of a service's scenario on a simulated cluster: servers, clients, and an inspector
// that reads what failures have left. This starts and ends them, and notes what they run into. What
// fails, and when, is up to its users: a run of a plan (scenario_run.h), and recovery alone
// (recovery.h).
//
// Nodes: the servers are 0, 1, ...; the clients follow; the last one is the inspector's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "explore/patience.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

// The port of a client that has already been started `before` times. Each start uses another port,
// since threads of earlier starts may still be finding out that their server has gone. Throws
// UsageError if there is none left: two clients with one port would take each other's messages.
fabric::Port port_of_client(const services::CrashScenario& scenario, std::uint32_t client,
                            std::uint32_t before = 0);

class ScenarioProcesses {
 public:
  // `scenario` and `profile` must outlive this. `clients`: how many of the scenario's clients have
  // nodes; 0 if only what is left after a failure is looked at.
  ScenarioProcesses(services::CrashScenario& scenario, const sim::Profile& profile,
                    std::uint32_t clients);
  ScenarioProcesses(const ScenarioProcesses&) = delete;
  ScenarioProcesses& operator=(const ScenarioProcesses&) = delete;
  ~ScenarioProcesses();

  sim::SimPlatform& platform() { return platform_; }
  const sim::SimPlatform& platform() const { return platform_; }
  Time now() { return platform_.engine().now(); }
  std::vector<NodeId> servers() const;
  NodeId inspector() const { return scenario_.servers() + clients_; }

  // Starts all workers of one server, or of all, at ports 0, 1, ... They open, and if necessary
  // recover, what their nodes hold.
  void start_server(NodeId node);
  void start_servers();
  // Starts a client's process, which uses the servers once (CrashScenario::use()), or runs `work`
  // instead.
  void start_client(std::uint32_t number, std::uint32_t before = 0);
  void start_client(std::uint32_t number, fabric::Port port, std::function<Task<>(Thread&)> work);
  // A client's operations once; the first reason why one could not connect is kept.
  Task<> use(Thread& thread, std::uint32_t number);
  // Starts the inspector, which begins when `ready` returns true.
  void start_inspector(std::function<bool()> ready = {});
  // Kills the processes of all clients and of the inspector.
  void end_clients();

  // Runs until nothing is left to do.
  void run();
  // From now on the scenario notes as a problem whatever a server cannot open and whatever ends the
  // run early, since a failure may have caused it. Before this call such an error is a mistake in
  // how the system is used, and run() throws it.
  void note_problems() { notes_problems_ = true; }
  const std::string& client_problem() const { return client_problem_; }

  // From now on, when the run makes no progress for a long time (patience.h), calls `give_up`,
  // which must end the threads that wait. By default all clients and the inspector are ended.
  void be_patient(std::function<void()> give_up = {});
  // Sets the function that is called whenever the scenario may have changed. The default function
  // calls note_progress() (patience.h).
  void watch(std::function<void()> look);
  void note_progress() { patience_.note_progress(); }

 private:
  Task<> serve(Thread& thread);
  Task<> use_at_work(Thread& thread, std::uint32_t number);
  Task<> inspect(Thread& thread, std::function<bool()> ready);

  services::CrashScenario& scenario_;
  std::uint32_t clients_;
  bool notes_problems_ = false;
  std::string client_problem_;
  Patience patience_;
  // Declared last, so destroyed first: its threads use the members above.
  sim::SimPlatform platform_;
};

}  // namespace perdura::explore
