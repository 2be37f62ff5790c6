#include "explore/generated_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura::explore {

namespace {

// If a store has not been filled until then, it is not going to be.
constexpr Picoseconds kLongestPreparation = std::chrono::milliseconds(5);
// A process is started again some time after its death, when the devices are done with what it had
// begun.
constexpr Picoseconds kRestart = Microseconds(100);

constexpr std::string_view kProcessDeaths = "deaths of servers' processes";
constexpr std::string_view kWhileRecovering = "failures while recovering";
constexpr std::string_view kWhileAtWork = "failures while clients are at work";
constexpr std::string_view kClientDeaths = "deaths of clients";
constexpr std::string_view kBrokenConnections = "broken connections";
constexpr std::string_view kOfOneServer = "failures of one server alone";
constexpr std::string_view kWhileAway = "failures while a server is away";

// The tape's simplest image is the one that keeps the most, so that the simplest run that fails
// loses only what it has to.
class MostIsSimplest final : public pmem::Choices {
 public:
  explicit MostIsSimplest(pmem::Choices& tape) : tape_(tape) {}
  std::size_t choose(std::size_t n) override { return n - 1 - tape_.choose(n); }

 private:
  pmem::Choices& tape_;
};

// With fences that take long, others often see what is not durable yet, and a failure often finds
// it so; else they last for less than any message.
sim::Profile drawn_profile(sim::Profile profile, pmem::Tape& tape) {
  constexpr Picoseconds kLongFence = Microseconds(10);
  constexpr double kSlowReads = 64e6;  // over the bus, a cache line in a microsecond
  if (tape.stream("fences").choose(4) == 3) profile.cpu.fence = kLongFence;
  if (tape.stream("bus").choose(8) == 7) profile.nic.pcie_read_bandwidth = kSlowReads;
  return profile;
}

}  // namespace

GeneratedRun::GeneratedRun(const services::ServedSystem& system, const sim::Profile& profile,
                           const services::CrashSetup& setup, pmem::Tape& tape)
    : tape_(tape),
      profile_(drawn_profile(profile, tape)),
      plan_{drawn_failures(tape), {}, {}, {}},  // the rest depends on the scenario
      scenario_(system.service->generated_scenario(
          system.info.name, setup, tape, static_cast<std::uint32_t>(plan_.failures.size()))),
      away_(scenario_->servers()),
      clients_(scenario_->clients()),
      run_(std::make_unique<ScenarioRun>(*scenario_, profile_, scenario_->clients())),
      platform_(&run_->platform()),
      triggers_(*platform_) {
  plan_ = drawn_plan(tape, std::move(plan_.failures), *scenario_, setup.late_placements);
  platform_->track_durability(setup.model);
  expect_events();
  run_->watch([this] { note_change(); });
  run_->note_problems();
}

void GeneratedRun::expect_events() {
  for (const std::string_view event :
       {kPowerFailures, kProcessDeaths, kWhileRecovering, kWhileAtWork}) {
    record_.expect(event);
  }
  for (const std::string_view quarter : kFailuresInQuarters) record_.expect(quarter);
  if (scenario_->servers() > 1) {
    for (const std::string_view event : {kOfOneServer, kWhileAway}) record_.expect(event);
  }
  for (std::uint32_t client = 0; client < scenario_->clients(); ++client) {
    if (scenario_->has_node_of_its_own(client)) record_.expect(kClientDeaths);
    if (!links_of(*scenario_, client).empty()) record_.expect(kBrokenConnections);
  }
}

// Stalls of one thread that overlap are one.
void GeneratedRun::stall_threads() {
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

void GeneratedRun::begin() {
  stall_threads();
  platform_->choose_schedule(plan_.schedule);
  if (crash_points_) {
    platform_->between_events([this] { crash_points_->look(failures_); });
  } else if (awaits_steps()) {
    platform_->between_events([this] { note_steps(); });
  }
  start_all();
  run_->start_inspector([this] { return can_inspect(); });
  run_->be_patient([this] { end_clients(); });
  run_->run();
}

services::Verdict GeneratedRun::run(const services::ToJudge& judged) {
  begin();
  if (!disturbed_ && !run_->client_problem().empty()) {
    scenario_->note_problem(run_->client_problem());
  }
  note_state("end");
  return scenario_->judge(losing_failures_, judged);
}

const std::set<Time>& GeneratedRun::list_crash_points(std::function<bool()> begins,
                                                      std::uint32_t failures_before) {
  crash_points_.emplace(*scenario_, *platform_, std::move(begins), failures_before);
  begin();
  return crash_points_->points();
}

void GeneratedRun::start_all() {
  run_->start_servers();
  for (std::uint32_t number = 0; number < scenario_->clients(); ++number) {
    clients_[number].turns = 1;
    start_client(number);
  }
  begin_epoch();
}

// Clients that are at work go on when they are done, or when they find out that it has gone. Those
// on its node come back with it.
void GeneratedRun::go_on_without(NodeId server) {
  for (std::uint32_t number = 0; number < scenario_->clients(); ++number) {
    ++clients_[number].turns;
    if (scenario_->node_of_client(number) != server && !clients_[number].is_at_work) {
      start_client(number);
    }
  }
  begin_epoch();
}

void GeneratedRun::return_alone(NodeId server) {
  away_[server] = 0;
  run_->start_server(server);
  for (std::uint32_t number = 0; number < scenario_->clients(); ++number) {
    if (scenario_->node_of_client(number) == server) start_client(number);
  }
}

// Awaits the deaths and the failure of the epoch, which lasts until the next failure.
void GeneratedRun::begin_epoch() {
  triggers_.begin();
  // Filling a store may take longer than what is to happen then.
  if (failures_ > 0 || !scenario_->prepares()) return await_what_is_planned();
  const auto await_once = [this, awaited = std::make_shared<bool>(false)] {
    if (std::exchange(*awaited, true)) return;
    triggers_.begin();  // what was before this is nothing that a failure may follow
    await_what_is_planned();
  };
  scenario_->when_prepared(await_once);
  platform_->at(now() + kLongestPreparation, await_once);
}

void GeneratedRun::await_what_is_planned() {
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
  triggers_.at({.delay = trigger.patience()}, fail_once);
}

void GeneratedRun::note_change() {
  run_->note_progress();
  note_state("operation");
  // A problem counts as the loss of everything, so nothing else needs to be known.
  if (!scenario_->problem().empty()) {
    platform_->at(Executor::current().now(), [this] {
      for (NodeId node = 0; node <= run_->inspector(); ++node) platform_->kill(node);
    });
  }
  // Whatever happens at a time that a task sets is later by what its thread has still to be charged
  // for.
  const Time at_work = Executor::current().now();
  triggers_.note_change(at_work + (at_work - now()));
  triggers_.count(Counted::changes, 1, at_work);
  const std::uint64_t early = std::exchange(early_, scenario_->early_observations());
  triggers_.count(Counted::early_observations, early_ - early, at_work);
}

bool GeneratedRun::awaits_steps() const {
  const auto awaits = [](const auto& planned) { return planned.trigger.counted == Counted::steps; };
  return std::any_of(plan_.failures.begin(), plan_.failures.end(), awaits) ||
         std::any_of(plan_.deaths.begin(), plan_.deaths.end(), awaits);
}

// Called between events.
void GeneratedRun::note_steps() {
  const std::uint64_t before = std::exchange(steps_, scenario_->steps_begun());
  if (steps_ > before) triggers_.count(Counted::steps, steps_ - before, now());
}

void GeneratedRun::end_clients() {
  for (Client& client : clients_) client.turns = 0;
  run_->end_clients();
}

void GeneratedRun::start_client(std::uint32_t number) {
  clients_[number].port = port_of_client(*scenario_, number, failures_);
  clients_[number].is_at_work = true;
  run_->start_client(number, clients_[number].port,
                     [this, number](Thread& thread) { return take_turns(thread, number); });
}

// Uses the servers once in each epoch, until a later process of this client has taken its place.
Task<> GeneratedRun::take_turns(Thread& thread, std::uint32_t number) {
  const services::CrashScenario::AtWork at_work(*scenario_);
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
    co_await run_->use(thread, number);
  }
}

// The last failure has been, all servers are back, and no client is at work any more.
bool GeneratedRun::can_inspect() const {
  return ready_to_inspect_ && !is_any_away() && scenario_->clients_at_work() == 0 &&
         std::none_of(clients_.begin(), clients_.end(),
                      [](const Client& client) { return client.turns > 0; });
}

void GeneratedRun::end_client(const PlannedDeath& death) {
  disturbed_ = true;
  if (death.broken) return break_connections(*death.broken);
  record_.count(kClientDeaths);
  record_.note(now(), fmt::format("client {} dies", death.client));
  platform_->kill(scenario_->node_of_client(death.client));
  clients_[death.client].turns = 0;
  clients_[death.client].is_at_work = false;
  note_state("client dies");
}

void GeneratedRun::break_connections(const Link& link) {
  const auto [node, peer] = link;
  record_.count(kBrokenConnections);
  record_.note(now(), fmt::format("the connections between nodes {} and {} break", node, peer));
  for (const fabric::Port port : ports_of(node)) {
    for (const fabric::Port of_peer : ports_of(peer)) {
      platform_->break_connections({node, port}, {peer, of_peer});
    }
  }
  note_state("connection breaks");
}

// The ports of a server's workers and of the clients on the node.
std::vector<fabric::Port> GeneratedRun::ports_of(NodeId node) const {
  std::vector<fabric::Port> ports;
  if (node < scenario_->servers()) {
    for (std::uint32_t worker = 0; worker < scenario_->workers(); ++worker) {
      ports.push_back(static_cast<fabric::Port>(worker));
    }
  }
  for (std::uint32_t client = 0; client < scenario_->clients(); ++client) {
    if (scenario_->node_of_client(client) == node) ports.push_back(clients_[client].port);
  }
  return ports;
}

// The failure with which the list of crash points ends does not happen.
void GeneratedRun::fail(const PlannedFailure& failure) {
  disturbed_ = true;
  if (crash_points_ && failures_ == crash_points_->failures()) {
    crash_points_->end();
    return end_clients();
  }
  note_failure(failure);
  std::vector<NodeId> failing = run_->servers();
  const bool is_alone = failure.alone && failing.size() > 1;
  if (is_alone) failing = {static_cast<NodeId>(*failure.alone % failing.size())};
  const services::ServerFailure of_servers{
      now(), is_alone ? std::optional(failing.front()) : std::nullopt};
  scenario_->note_failure(of_servers);
  for (const NodeId node : failing) scenario_->stop_serving(node);
  if (failure.is_of_power || scenario_->loses_with_processes()) {
    losing_failures_.push_back(of_servers);
  }
  if (is_alone) record_.count(kOfOneServer);
  record_.count(failure.is_of_power ? kPowerFailures : kProcessDeaths);
  const std::string whose =
      is_alone ? fmt::format("server {}", failing.front()) : std::string("the servers");
  if (failure.is_of_power) {
    record_.note(now(), fmt::format("the power of {} fails", whose));
    if (keeps_images_ && !is_alone && is_last_of_power()) keep_what_is_left();
    MostIsSimplest image(tape_.stream(fmt::format("image-{}", failure.number)));
    platform_->fail_power(failing, image);
  } else {
    record_.note(now(), fmt::format("the {} of {} {}", is_alone ? "process" : "processes", whose,
                                    is_alone ? "dies" : "die"));
    for (const NodeId node : failing) platform_->kill(node);
  }
  restart(failure, failing);
}

// Records what the run was like just before the failure, and that it happens.
void GeneratedRun::note_failure(const PlannedFailure& failure) {
  if (scenario_->clients_at_work() > 0) record_.count(kWhileAtWork);
  const std::uint64_t changed = triggers_.counted(Counted::changes);
  if (const std::uint64_t planned = planned_changes(*scenario_, failures_); planned > 0) {
    constexpr std::uint64_t kLast = kFailuresInQuarters.size() - 1;
    const std::uint64_t quarter = changed * kFailuresInQuarters.size() / planned;
    record_.count(kFailuresInQuarters.at(std::min(quarter, kLast)));
  }
  if (failures_ > 0 && !scenario_->serves(now())) record_.count(kWhileRecovering);
  note_state(failure.is_of_power ? "power fails" : "processes die");
  const Picoseconds after = now() - planned_at_;
  const Trigger trigger = trigger_after(changed, triggers_.since_change(), after);
  // A failure that follows that change does not wait for longer.
  if (after <= trigger.patience()) triggers_of_failures_[failure.number] = trigger;
  ++failures_;
  all_failures_.push_back(now());
  if (is_any_away()) record_.count(kWhileAway);
  power_failed_last_ = failure.is_of_power;
}

// Starts the servers that have failed again, and the next epoch.
void GeneratedRun::restart(const PlannedFailure& failure, std::span<const NodeId> failing) {
  const bool is_alone = failing.size() < scenario_->servers();
  for (const NodeId node : failing) away_[node] = is_alone ? failures_ : 0;
  const Time back = now() + std::max(failure.away, power_failed_last_ ? Picoseconds{} : kRestart);
  if (is_alone) {
    const NodeId server = failing.front();
    platform_->at(back, [this, server, since = failures_] {
      if (away_[server] == since) return_alone(server);
    });
    go_on_without(server);
  } else if (power_failed_last_) {
    start_all();
  } else {
    platform_->at(back, [this] { start_all(); });
  }
}

bool GeneratedRun::is_any_away() const {
  return std::any_of(away_.begin(), away_.end(), [](std::uint32_t since) { return since > 0; });
}

bool GeneratedRun::is_last_of_power() const {
  return std::none_of(plan_.failures.begin() + failures_, plan_.failures.end(),
                      [](const PlannedFailure& later) { return later.is_of_power; });
}

void GeneratedRun::keep_what_is_left() {
  std::vector<pmem::ImageSpace> images = images_left(*platform_, scenario_->servers());
  if (std::all_of(images.begin(), images.end(),
                  [](const pmem::ImageSpace& space) { return space.words().empty(); })) {
    return;
  }
  left_.emplace(Left{failures_ - 1, losing_failures_, LeftMemory(*platform_, std::move(images))});
  scenario_->take_snapshot();
}

GeneratedRun::ImagesTried GeneratedRun::try_images(
    std::uint64_t most, const std::function<bool(const services::Verdict&)>& fails) {
  ImagesTried tried;
  if (!left_ || !scenario_->problem().empty()) return tried;
  const Time begin = now();
  run_.reset();  // what its threads know of the scenario goes with them
  scenario_->restore_snapshot();
  pmem::LazyImages images(std::move(left_->memory.spaces), 1);
  std::set<std::string> known;
  while (images.runs() < most && images.next()) {
    scenario_->stop_serving();
    recover_from(images, *scenario_, profile_, begin, left_->memory.memories);
    ++tried.recoveries;
    if (known.insert(scenario_->observations()).second &&
        fails(scenario_->judge(left_->losing_failures, services::ToJudge::all()))) {
      tried.failing = with_image(images);
      break;
    }
    scenario_->restore_snapshot();
  }
  return tried;
}

pmem::Tape::Streams GeneratedRun::with_image(const pmem::LazyImages& images) const {
  pmem::Tape::Streams streams = tape_.drawn();
  std::vector<std::uint64_t>& image =
      streams[fmt::format("image-{}", plan_.failures[left_->failure].number)];
  image.clear();
  for (std::size_t space = 0; space < images.spaces().size(); ++space) {
    for (const auto& [taken, of] : images.choices(space)) image.push_back(of - 1 - taken);
  }
  for (std::size_t later = left_->failure + 1; later < plan_.failures.size(); ++later) {
    streams[fmt::format("failure-{}", plan_.failures[later].number)].clear();
  }
  const std::size_t epochs = plan_.failures.size() + 1;
  for (auto& [name, choices] : streams) {
    if (stream_of(name) != StreamOf::clients) continue;
    choices.resize(places_of_epoch(choices.size(), epochs, left_->failure + 1).begin);
  }
  return streams;
}

void GeneratedRun::note_state(std::string_view event) {
  services::SystemState state;
  state.add(event, 1);
  state.add("power failed last", power_failed_last_ ? 1 : 0);
  state.add("failures", failures_);
  state.add("serves", scenario_->serves(now()) ? 1 : 0);
  scenario_->describe(state);
  record_.add(state);
}

std::map<std::string, std::uint64_t> GeneratedRun::happened() const {
  auto all = record_.counts();
  for (const auto& [name, count] : scenario_->events()) all[name] += count;
  return all;
}

pmem::Tape::Streams GeneratedRun::anchored() const {
  pmem::Tape::Streams streams = tape_.drawn();
  for (std::size_t before = 0; before < plan_.failures.size(); ++before) {
    const std::uint32_t number = plan_.failures[before].number;
    const auto trigger = triggers_of_failures_.find(number);
    if (trigger == triggers_of_failures_.end()) continue;
    const std::vector<std::uint64_t> choices =
        choices_of(trigger->second, planned_changes(*scenario_, before));
    if (choices.empty()) continue;
    std::vector<std::uint64_t>& failure = streams[fmt::format("failure-{}", number)];
    failure.resize(kTriggerOfFailure);
    failure.insert(failure.end(), choices.begin(), choices.end());
  }
  return streams;
}

ExplainedRun GeneratedRun::story() const {
  ExplainedRun run;
  run.servers = scenario_->servers();
  run.clients = scenario_->clients();
  run.calls = scenario_->calls();
  run.failures = all_failures_;
  run.events = record_.events();
  return run;
}

}  // namespace perdura::explore
