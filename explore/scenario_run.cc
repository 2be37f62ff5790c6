#include "explore/scenario_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura::explore {

namespace {

// By then clients know that their servers are gone, except for those that were connecting.
constexpr Picoseconds kUntilNoticed = std::chrono::milliseconds(1);

constexpr std::string_view kProcessDeaths = "deaths of servers' processes";
constexpr std::string_view kWhileRecovering = "failures while recovering";
constexpr std::string_view kWhileAtWork = "failures while clients are at work";
constexpr std::string_view kClientDeaths = "deaths of clients";
constexpr std::string_view kBrokenConnections = "broken connections";
constexpr std::string_view kOfOneServer = "failures of one server alone";
constexpr std::string_view kWhileAway = "failures while a server is away";

bool is_among(NodeId node, std::span<const NodeId> nodes) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

ScenarioRun::ScenarioRun(services::CrashScenario& scenario, const sim::Profile& profile,
                         const pmem::PersistenceModel& model, Plan plan, ImageOf image)
    : scenario_(scenario),
      profile_(profile),
      plan_(std::move(plan)),
      image_(std::move(image)),
      away_(scenario.servers()),
      clients_(scenario.clients()),
      processes_(std::make_unique<ScenarioProcesses>(scenario, profile, scenario.clients())),
      platform_(&processes_->platform()),
      triggers_(*platform_) {
  platform_->track_durability(model);
  expect_events();
  processes_->watch([this] { note_change(); });
}

void ScenarioRun::expect_events() {
  for (const std::string_view event :
       {kPowerFailures, kProcessDeaths, kWhileRecovering, kWhileAtWork}) {
    record_.expect(event);
  }
  for (const std::string_view quarter : kFailuresInQuarters) record_.expect(quarter);
  if (scenario_.servers() > 1) {
    for (const std::string_view event : {kOfOneServer, kWhileAway}) record_.expect(event);
  }
  for (std::uint32_t client = 0; client < scenario_.clients(); ++client) {
    if (scenario_.has_node_of_its_own(client)) record_.expect(kClientDeaths);
    if (!links_of(scenario_, client).empty()) record_.expect(kBrokenConnections);
  }
}

// Stalls of one thread that overlap are one.
void ScenarioRun::stall_threads() {
  std::map<std::pair<NodeId, std::uint32_t>, std::vector<sim::Stall>> stalls;
  for (const auto& [node, thread, stall] : plan_.stalls) {
    stalls[{node, thread}].push_back(stall);
    record_.note(stall.begin, fmt::format("thread {} of node {} stalls for {:.0f} us", thread, node,
                                          to_microseconds(stall.end - stall.begin)));
  }
  for (auto& [thread, of_thread] : stalls) {
    std::sort(of_thread.begin(), of_thread.end(),
              [](const sim::Stall& a, const sim::Stall& b) { return a.begin < b.begin; });
    std::vector<sim::Stall> disjoint;
    for (const sim::Stall& stall : of_thread) {
      if (disjoint.empty() || stall.begin > disjoint.back().end) {
        disjoint.push_back(stall);
      } else {
        disjoint.back().end = std::max(disjoint.back().end, stall.end);
      }
    }
    platform_->stall(thread.first, thread.second, std::move(disjoint));
  }
}

void ScenarioRun::begin() {
  stall_threads();
  platform_->choose_schedule(plan_.schedule);
  if (crash_points_) {
    platform_->between_events([this] { crash_points_->look(failures_); });
  } else if (awaits_steps()) {
    platform_->between_events([this] { note_steps(); });
  }
  start_all();
  const bool inspects = !look_ && (!crash_points_ || !plan_.failures.empty());
  if (inspects) processes_->start_inspector([this] { return can_inspect(); });
  processes_->be_patient([this] { end_clients(); });
  processes_->run();
}

services::Verdict ScenarioRun::run(const services::ToJudge& judged) {
  begin();
  if (!disturbed_ && !processes_->client_problem().empty()) {
    scenario_.note_problem(processes_->client_problem());
  }
  note_state("end");
  return scenario_.judge(losing_failures_, judged);
}

std::vector<Picoseconds> ScenarioRun::list_crash_points(CrashPointList::Which which,
                                                        std::function<bool()> begins,
                                                        std::uint32_t failures_before) {
  const auto planned = [this, begins = std::move(begins)] {
    return planned_at_ && (!begins || begins());
  };
  crash_points_.emplace(which, scenario_, *platform_, planned, failures_before);
  begin();
  if (plan_.failures.size() == failures_before) {
    crash_points_->end();
    const std::string& problem = processes_->client_problem();
    if (!problem.empty()) scenario_.note_problem(problem);
  }
  std::vector<Picoseconds> after;
  for (const Time point : crash_points_->points()) after.push_back(point - planned_at_.value());
  return after;
}

void ScenarioRun::run_until_down(const std::function<void(sim::SimPlatform&)>& look) {
  look_ = look;
  begin();
}

void ScenarioRun::start_all() {
  processes_->start_servers();
  const bool use_servers = failures_ == 0 || plan_.clients_return;
  for (std::uint32_t number = 0; use_servers && number < scenario_.clients(); ++number) {
    clients_[number].turns = 1;
    start_client(number);
  }
  begin_epoch();
}

// Clients that are at work go on when they are done, or when they find out that the servers have
// gone. Those on a node of these come back with it.
void ScenarioRun::go_on_without(std::span<const NodeId> servers) {
  for (std::uint32_t number = 0; plan_.clients_return && number < scenario_.clients(); ++number) {
    ++clients_[number].turns;
    const NodeId node = scenario_.node_of_client(number);
    if (!is_among(node, servers) && !clients_[number].is_at_work) start_client(number);
  }
  begin_epoch();
}

void ScenarioRun::return_alone(NodeId server) {
  away_[server] = 0;
  processes_->start_server(server);
  for (std::uint32_t number = 0; plan_.clients_return && number < scenario_.clients(); ++number) {
    if (scenario_.node_of_client(number) == server) start_client(number);
  }
}

// Awaits the deaths and the failure of the epoch, which lasts until the next failure.
void ScenarioRun::begin_epoch() {
  triggers_.begin();
  // Filling a store may take longer than what is to happen then.
  if (failures_ > 0 || !scenario_.prepares()) return await_what_is_planned();
  const auto await_once = [this, awaited = std::make_shared<bool>(false)] {
    if (std::exchange(*awaited, true)) return;
    triggers_.begin();  // what was before this is nothing that a failure may follow
    await_what_is_planned();
  };
  scenario_.when_prepared(await_once);
  platform_->at(now() + scenario_.longest_preparation(), await_once);
}

void ScenarioRun::await_what_is_planned() {
  planned_at_ = now();
  for (const PlannedDeath& death : plan_.deaths) {
    if (death.failures == failures_)
      triggers_.at(death.trigger, [this, death] { end_client(death); });
  }
  if (failures_ == plan_.failures.size()) {
    ready_to_inspect_ = true;
    return;
  }
  const std::uint32_t before = failures_;
  const auto fail_once = [this, before] {
    if (failures_ == before) fail(plan_.failures[before]);
  };
  const Trigger& trigger = plan_.failures[before].trigger;
  triggers_.at(trigger, fail_once);
  // If there are fewer operations than that, or they take longer.
  if (trigger.number > 0) triggers_.at({.delay = trigger.patience()}, fail_once);
}

void ScenarioRun::note_change() {
  processes_->note_progress();
  note_state("operation");
  // A problem counts as the loss of everything, so nothing else needs to be known.
  if (!scenario_.problem().empty()) {
    platform_->at(Executor::current().now(), [this] {
      for (NodeId node = 0; node <= processes_->inspector(); ++node) platform_->kill(node);
    });
  }
  // Whatever happens at a time that a task sets is later by what its thread has still to be charged
  // for.
  const Time at_work = Executor::current().now();
  triggers_.note_change(at_work + (at_work - now()));
  triggers_.count(Counted::changes, 1, at_work);
  const std::uint64_t early = std::exchange(early_, scenario_.early_observations());
  triggers_.count(Counted::early_observations, early_ - early, at_work);
}

bool ScenarioRun::awaits_steps() const {
  const auto awaits = [](const auto& planned) { return planned.trigger.counted == Counted::steps; };
  return std::any_of(plan_.failures.begin(), plan_.failures.end(), awaits) ||
         std::any_of(plan_.deaths.begin(), plan_.deaths.end(), awaits);
}

// Called between events.
void ScenarioRun::note_steps() {
  const std::uint64_t before = std::exchange(steps_, scenario_.steps_begun());
  if (steps_ > before) triggers_.count(Counted::steps, steps_ - before, now());
}

void ScenarioRun::end_clients() {
  for (Client& client : clients_) client.turns = 0;
  processes_->end_clients();
}

void ScenarioRun::start_client(std::uint32_t number) {
  clients_[number].port = port_of_client(scenario_, number, failures_);
  clients_[number].is_at_work = true;
  processes_->start_client(number, clients_[number].port,
                           [this, number](Thread& thread) { return take_turns(thread, number); });
}

// Uses the servers once in each epoch, until a later process of this client has taken its place.
Task<> ScenarioRun::take_turns(Thread& thread, std::uint32_t number) {
  const services::CrashScenario::AtWork at_work(scenario_);
  struct Working {
    Client& client;
    fabric::Port port;
    bool is_current() const { return port == client.port; }
    ~Working() {
      if (is_current()) client.is_at_work = false;
    }
  };
  Client& client = clients_[number];
  const Working working{client, thread.endpoint.address().port};
  for (; client.turns > 0 && working.is_current(); co_await yield()) {
    --client.turns;
    co_await processes_->use(thread, number);
  }
}

// The last failure has been, all servers are back, and no client is at work any more.
bool ScenarioRun::can_inspect() const {
  return ready_to_inspect_ && !is_any_away() && scenario_.clients_at_work() == 0 &&
         std::none_of(clients_.begin(), clients_.end(),
                      [](const Client& client) { return client.turns > 0; });
}

void ScenarioRun::end_client(const PlannedDeath& death) {
  disturbed_ = true;
  processes_->note_problems();
  if (death.broken) return break_connections(*death.broken);
  failed_at_ = now();
  record_.count(kClientDeaths);
  record_.note(now(), fmt::format("client {} dies", death.client));
  platform_->kill(scenario_.node_of_client(death.client));
  clients_[death.client].turns = 0;
  clients_[death.client].is_at_work = false;
  note_state("client dies");
}

void ScenarioRun::break_connections(const Link& link) {
  const auto [node, peer] = link;
  record_.count(kBrokenConnections);
  record_.note(now(), fmt::format("the connections between nodes {} and {} break", node, peer));
  for (const fabric::Port port : ports_of(node)) {
    for (const fabric::Port of_peer : ports_of(peer)) {
      const std::size_t broken = platform_->break_connections({node, port}, {peer, of_peer});
      if (broken > 0) failed_at_ = now();
    }
  }
  note_state("connection breaks");
}

// The ports of a server's workers and of the clients on the node.
std::vector<fabric::Port> ScenarioRun::ports_of(NodeId node) const {
  std::vector<fabric::Port> ports;
  if (node < scenario_.servers()) {
    for (std::uint32_t worker = 0; worker < scenario_.workers(); ++worker) {
      ports.push_back(static_cast<fabric::Port>(worker));
    }
  }
  for (std::uint32_t client = 0; client < scenario_.clients(); ++client) {
    if (scenario_.node_of_client(client) == node) ports.push_back(clients_[client].port);
  }
  return ports;
}

// The failure with which the list of crash points ends does not happen.
void ScenarioRun::fail(const PlannedFailure& failure) {
  disturbed_ = true;
  if (crash_points_ && failures_ == crash_points_->failures()) {
    crash_points_->end();
    return end_clients();
  }
  processes_->note_problems();
  note_failure(failure);
  const std::vector<NodeId> failing =
      failure.servers.empty() ? processes_->servers() : failure.servers;
  for (std::uint32_t number = 0; !plan_.clients_return && number < clients_.size(); ++number) {
    // One that goes with its server may not even have begun.
    if (is_among(scenario_.node_of_client(number), failing)) clients_[number].turns = 0;
  }
  const services::ServerFailure of_servers{now(), failing.size() == 1 && scenario_.servers() > 1
                                                      ? std::optional(failing.front())
                                                      : std::nullopt};
  scenario_.note_failure(of_servers);
  for (const NodeId node : failing) scenario_.stop_serving(node);
  if (failure.is_of_power || scenario_.loses_with_processes()) {
    losing_failures_.push_back(of_servers);
  }
  if (of_servers.alone) record_.count(kOfOneServer);
  record_.count(failure.is_of_power ? kPowerFailures : kProcessDeaths);
  const std::string whose = of_all(failing) ? "the servers"
                            : of_servers.alone
                                ? fmt::format("server {}", failing.front())
                                : fmt::format("servers {}", fmt::join(failing, " and "));
  if (failure.is_of_power) {
    record_.note(now(), fmt::format("the power of {} fails", whose));
    fail_power(failure, failing);
  } else {
    record_.note(now(), fmt::format("the {} of {} {}", of_servers.alone ? "process" : "processes",
                                    whose, of_servers.alone ? "dies" : "die"));
    for (const NodeId node : failing) platform_->kill(node);
  }
  if (!look_) return restart(failure, failing);
  platform_->at(now() + kUntilNoticed, [this] { end_clients(); });
}

void ScenarioRun::fail_power(const PlannedFailure& failure, std::span<const NodeId> failing) {
  if (look_) look_(*platform_);
  if (keeps_images_ && of_all(failing) && is_last_of_power()) keep_what_is_left();
  platform_->fail_power(failing, image_(failure));
}

bool ScenarioRun::of_all(std::span<const NodeId> servers) const {
  return servers.size() == scenario_.servers();
}

// Records what the run was like just before the failure, and that it happens.
void ScenarioRun::note_failure(const PlannedFailure& failure) {
  if (scenario_.clients_at_work() > 0) record_.count(kWhileAtWork);
  const std::uint64_t changed = triggers_.counted(Counted::changes);
  if (const std::uint64_t planned = planned_changes(scenario_, failures_); planned > 0) {
    constexpr std::uint64_t kLast = kFailuresInQuarters.size() - 1;
    const std::uint64_t quarter = changed * kFailuresInQuarters.size() / planned;
    record_.count(kFailuresInQuarters.at(std::min(quarter, kLast)));
  }
  if (failures_ > 0 && !scenario_.serves(now())) record_.count(kWhileRecovering);
  note_state(failure.is_of_power ? "power fails" : "processes die");
  const Picoseconds after = now() - planned_at_.value();
  const Trigger trigger = trigger_after(changed, triggers_.since_change(), after);
  // A failure that follows that change does not wait for longer.
  if (after <= trigger.patience()) happened_after_[failure.number] = trigger;
  ++failures_;
  all_failures_.push_back(now());
  failed_at_ = now();
  if (is_any_away()) record_.count(kWhileAway);
  power_failed_last_ = failure.is_of_power;
}

// Starts the servers that have failed again, and the next epoch.
void ScenarioRun::restart(const PlannedFailure& failure, std::span<const NodeId> failing) {
  for (const NodeId node : failing) away_[node] = of_all(failing) ? 0 : failures_;
  const Time back = now() + failure.away;
  if (!of_all(failing)) {
    for (const NodeId server : failing) {
      platform_->at(back, [this, server, since = failures_] {
        if (away_[server] == since) return_alone(server);
      });
    }
    go_on_without(failing);
  } else if (power_failed_last_) {
    start_all();
  } else {
    platform_->at(back, [this] { start_all(); });
  }
}

bool ScenarioRun::is_any_away() const {
  return std::any_of(away_.begin(), away_.end(), [](std::uint32_t since) { return since > 0; });
}

bool ScenarioRun::is_last_of_power() const {
  return std::none_of(plan_.failures.begin() + failures_, plan_.failures.end(),
                      [](const PlannedFailure& later) { return later.is_of_power; });
}

void ScenarioRun::keep_what_is_left() {
  std::vector<pmem::ImageSpace> images = images_left(*platform_, scenario_.servers());
  if (std::all_of(images.begin(), images.end(),
                  [](const pmem::ImageSpace& space) { return space.words().empty(); })) {
    return;
  }
  left_.emplace(Left{failures_ - 1, losing_failures_, LeftMemory(*platform_, std::move(images))});
  scenario_.take_snapshot();
}

ScenarioRun::ImagesTried ScenarioRun::try_images(
    std::uint64_t most, const std::function<bool(const services::Verdict&)>& fails) {
  ImagesTried tried;
  if (!left_ || !scenario_.problem().empty()) return tried;
  const Time begin = now();
  processes_.reset();  // what its threads know of the scenario goes with them
  scenario_.restore_snapshot();
  pmem::LazyImages images(std::move(left_->memory.spaces), 1);
  Recoveries recoveries(images, left_->memory.memories, scenario_, profile_, begin);
  while (recoveries.count() < most && recoveries.next()) {
    if (recoveries.found_new() &&
        fails(scenario_.judge(left_->losing_failures, services::ToJudge::all()))) {
      tried.failure = left_->failure;
      tried.image = choices_of(images);
      break;
    }
  }
  tried.recoveries = recoveries.count();
  return tried;
}

void ScenarioRun::note_state(std::string_view event) {
  services::SystemState state;
  state.add(event, 1);
  state.add("power failed last", power_failed_last_ ? 1 : 0);
  state.add("failures", failures_);
  state.add("serves", scenario_.serves(now()) ? 1 : 0);
  scenario_.describe(state);
  record_.add(state);
}

std::map<std::string, std::uint64_t> ScenarioRun::happened() const {
  auto all = record_.counts();
  for (const auto& [name, count] : scenario_.events()) all[name] += count;
  return all;
}

ExplainedRun ScenarioRun::story() const {
  ExplainedRun run;
  run.servers = scenario_.servers();
  run.clients = scenario_.clients();
  run.calls = scenario_.calls();
  run.failures = all_failures_;
  run.events = record_.events();
  return run;
}

}  // namespace perdura::explore
