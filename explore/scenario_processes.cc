#include "explore/scenario_processes.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura::explore {

fabric::Port port_of_client(const services::CrashScenario& scenario, std::uint32_t client,
                            std::uint32_t before) {
  constexpr std::uint64_t kFirstPortAfterWorkers = 0x1000;  // on the node of a server
  constexpr std::uint64_t kPortsOfSystems = 0x4000;         // and above, for their own threads
  const std::uint64_t first =
      scenario.has_node_of_its_own(client) ? scenario.servers() : kFirstPortAfterWorkers;
  const std::uint64_t port = first + std::uint64_t{before} * scenario.clients() + client;
  if (client >= scenario.clients() || port >= kPortsOfSystems) {
    throw UsageError(fmt::format(
        "client {} of {} has no port of its own at start {}; use fewer clients or failures", client,
        scenario.clients(), before + 1));
  }
  return static_cast<fabric::Port>(port);
}

ScenarioProcesses::ScenarioProcesses(services::CrashScenario& scenario, const sim::Profile& profile,
                                     std::uint32_t clients)
    : scenario_(scenario),
      clients_(clients),
      patience_(scenario),
      platform_(profile, {{"server", scenario.servers()}, {"client", clients + 1}}) {
  watch([this] { note_progress(); });
}

ScenarioProcesses::~ScenarioProcesses() { scenario_.watch({}); }

void ScenarioProcesses::watch(std::function<void()> look) { scenario_.watch(std::move(look)); }

std::vector<NodeId> ScenarioProcesses::servers() const {
  std::vector<NodeId> servers(scenario_.servers());
  std::iota(servers.begin(), servers.end(), NodeId{0});
  return servers;
}

void ScenarioProcesses::start_server(NodeId node) {
  for (std::uint32_t worker = 0; worker < scenario_.workers(); ++worker) {
    platform_.start_service(node, static_cast<fabric::Port>(worker), CompletionMode::polling,
                            [this](Thread& thread) { return serve(thread); });
  }
}

void ScenarioProcesses::start_servers() {
  for (const NodeId node : servers()) start_server(node);
}

void ScenarioProcesses::start_client(std::uint32_t number, std::uint32_t before) {
  start_client(number, port_of_client(scenario_, number, before), {});
}

void ScenarioProcesses::start_client(std::uint32_t number, fabric::Port port,
                                     std::function<Task<>(Thread&)> work) {
  if (!work) work = [this, number](Thread& thread) { return use_at_work(thread, number); };
  platform_.start(scenario_.node_of_client(number), port, CompletionMode::polling, std::move(work));
}

void ScenarioProcesses::start_inspector(std::function<bool()> ready) {
  platform_.start(
      inspector(), static_cast<fabric::Port>(inspector()), CompletionMode::polling,
      [this, ready = std::move(ready)](Thread& thread) { return inspect(thread, ready); });
}

void ScenarioProcesses::end_clients() {
  for (std::uint32_t number = 0; number < clients_; ++number) {
    platform_.kill(scenario_.node_of_client(number));
  }
  platform_.kill(inspector());
}

void ScenarioProcesses::run() {
  try {
    platform_.run();
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    if (!notes_problems_) throw;
    scenario_.note_problem(error.what());
  }
}

void ScenarioProcesses::be_patient(std::function<void()> give_up) {
  if (!give_up) give_up = [this] { end_clients(); };
  patience_.begin(platform_, std::move(give_up));
}

Task<> ScenarioProcesses::serve(Thread& thread) {
  try {
    co_await scenario_.serve(thread);
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    if (!notes_problems_) throw;
    scenario_.note_problem(fmt::format("recovery fails: {}", error.what()));
  }
}

Task<> ScenarioProcesses::use_at_work(Thread& thread, std::uint32_t number) {
  const services::CrashScenario::AtWork at_work(scenario_);
  co_await use(thread, number);
}

Task<> ScenarioProcesses::use(Thread& thread, std::uint32_t number) {
  try {
    co_await scenario_.use(thread, number);
  } catch (const PlatformError& error) {
    if (client_problem_.empty()) client_problem_ = error.what();
  }
}

Task<> ScenarioProcesses::inspect(Thread& thread, std::function<bool()> ready) {
  constexpr Picoseconds kLook = Microseconds(20);
  while (ready && !ready()) co_await sleep_for(kLook);
  try {
    co_await scenario_.inspect(thread);
  } catch (const PlatformError& error) {
    scenario_.note_problem(error.what());
  }
}

}  // namespace perdura::explore
