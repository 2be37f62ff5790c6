#include "explore/generated_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "explore/recovery.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/sim/machine.h"

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
      late_placements_(setup.late_placements),
      planned_(drawn_failures()),
      scenario_(system.service->generated_scenario(system.info.name, setup, tape,
                                                   static_cast<std::uint32_t>(planned_.size()))),
      away_(scenario_->servers()),
      clients_(scenario_->clients()),
      run_(std::make_unique<ScenarioRun>(*scenario_, profile_, scenario_->clients())),
      platform_(&run_->platform()) {
  platform_->track_durability(setup.model);
  for (const std::string_view name :
       {kPowerFailures, kProcessDeaths, kWhileRecovering, kWhileAtWork}) {
    happened_[std::string(name)] = 0;
  }
  for (const std::string_view quarter : kFailuresInQuarters) happened_[std::string(quarter)] = 0;
  if (scenario_->servers() > 1) {
    happened_[std::string(kOfOneServer)] = happened_[std::string(kWhileAway)] = 0;
  }
  for (std::uint32_t client = 0; client < scenario_->clients(); ++client) {
    if (scenario_->has_node_of_its_own(client)) happened_[std::string(kClientDeaths)] = 0;
    if (!links_of(client).empty()) happened_[std::string(kBrokenConnections)] = 0;
  }
  draw_moments();
  run_->watch([this] { note_change(); });
  run_->note_problems();
}

void GeneratedRun::begin() {
  draw_stalls();
  draw_schedule();
  draw_deaths();
  if (moments_begin_) {
    platform_->between_events([this] { note_moment(); });
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

void GeneratedRun::list_moments(std::function<bool()> begins, std::uint32_t failures_before) {
  moments_begin_ = std::move(begins);
  moments_after_failures_ = failures_before;
  platform_->list_moments();
  begin();
}

// Called between events: a client may have gone on in the last one.
void GeneratedRun::note_moment() {
  const Time now = platform_->engine().now();
  if (!moments_from_ && failures_ == moments_after_failures_ && moments_begin_())
    moments_from_ = now;
  std::uint64_t steps = 0;
  for (std::uint32_t client = 0; client < scenario_->clients(); ++client) {
    steps += platform_->steps(scenario_->node_of_client(client));
  }
  if (std::exchange(client_steps_, steps) != steps) note_moment_before(now);
}

void GeneratedRun::note_moment_before(Time when) {
  constexpr Picoseconds kInstant{1};
  if (moments_from_ && when > *moments_from_) moments_.insert(when - kInstant);
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

bool GeneratedRun::is_any_away() const {
  return std::any_of(away_.begin(), away_.end(), [](std::uint32_t since) { return since > 0; });
}

// Plans the deaths and the failure of the epoch, which lasts until the next failure.
void GeneratedRun::begin_epoch() {
  counts_.clear();
  changed_at_ = platform_->engine().now();
  awaited_.clear();
  // Filling a store may take longer than what is to happen then.
  if (failures_ > 0 || !scenario_->prepares()) return plan_what_happens();
  const auto plan_once = [this, planned = std::make_shared<bool>(false)] {
    if (std::exchange(*planned, true)) return;
    counts_.clear();  // what was before this is nothing that a failure may follow
    changed_at_ = platform_->engine().now();
    plan_what_happens();
  };
  scenario_->when_prepared(plan_once);
  platform_->at(platform_->engine().now() + kLongestPreparation, plan_once);
}

void GeneratedRun::plan_what_happens() {
  planned_at_ = platform_->engine().now();
  for (const PlannedDeath& death : deaths_) {
    if (death.failures == failures_) at(death.moment, [this, death] { end_client(death); });
  }
  if (failures_ == planned_.size()) {
    ready_to_inspect_ = true;
    return;
  }
  const std::uint32_t before = failures_;
  const auto fail_once = [this, before] {
    if (failures_ == before) fail(planned_[before]);
  };
  const Moment& moment = planned_[before].moment;
  at(moment, fail_once);
  // If there are fewer operations than that, or they take longer.
  at({.delay = patience_with(moment)}, fail_once);
}

void GeneratedRun::at(const Moment& moment, std::function<void()> then) {
  if (moment.number > 0) return awaited_.push_back({moment, std::move(then)});
  platform_->at(platform_->engine().now() + moment.delay, std::move(then));
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
  // From when at() counts: it adds what the running thread has still to be charged for.
  const Time now = Executor::current().now();
  changed_at_ = now + (now - platform_->engine().now());
  count(Counted::changes, 1, now);
  const std::uint64_t early = std::exchange(early_, scenario_->early_observations());
  count(Counted::early_observations, early_ - early, now);
}

bool GeneratedRun::awaits_steps() const {
  const auto awaits = [](const auto& planned) { return planned.moment.of == Counted::steps; };
  return std::any_of(planned_.begin(), planned_.end(), awaits) ||
         std::any_of(deaths_.begin(), deaths_.end(), awaits);
}

// Called between events.
void GeneratedRun::note_steps() {
  const std::uint64_t before = std::exchange(steps_, scenario_->steps_begun());
  if (steps_ > before) count(Counted::steps, steps_ - before, platform_->engine().now());
}

void GeneratedRun::count(Counted what, std::uint64_t number, Time now) {
  const std::uint64_t before = counts_[what];
  const std::uint64_t after = counts_[what] += number;
  for (const auto& [moment, then] : awaited_) {
    if (moment.of != what || moment.number <= before || moment.number > after) continue;
    platform_->at(now + moment.delay, then);
  }
}

void GeneratedRun::end_client(const PlannedDeath& death) {
  disturbed_ = true;
  const Time now = platform_->engine().now();
  if (death.broken) {
    const auto [node, peer] = *death.broken;
    ++happened_[std::string(kBrokenConnections)];
    note(now, fmt::format("the connections between nodes {} and {} break", node, peer));
    for (const fabric::Port port : ports_of(node)) {
      for (const fabric::Port of_peer : ports_of(peer)) {
        platform_->break_connections({node, port}, {peer, of_peer});
      }
    }
    note_state("connection breaks");
  } else {
    ++happened_[std::string(kClientDeaths)];
    note(now, fmt::format("client {} dies", death.client));
    platform_->kill(scenario_->node_of_client(death.client));
    clients_[death.client].turns = 0;
    clients_[death.client].is_at_work = false;
    note_state("client dies");
  }
}

void GeneratedRun::fail(const PlannedFailure& failure) {
  disturbed_ = true;
  const Time now = platform_->engine().now();
  if (moments_begin_ && failures_ == moments_after_failures_) {
    for (const Time moment : platform_->moments()) note_moment_before(std::min(moment, now));
    note_moment_before(now);
    return end_clients();
  }
  if (scenario_->clients_at_work() > 0) ++happened_[std::string(kWhileAtWork)];
  count_quarter();
  if (failures_ > 0 && !scenario_->serves(now)) ++happened_[std::string(kWhileRecovering)];
  note_state(failure.kind == Kind::power ? "power fails" : "processes die");
  const Picoseconds after = now - planned_at_;
  const Moment moment = moment_now(after);
  // A failure that follows that change does not wait for longer.
  if (after <= patience_with(moment)) moments_of_failures_[failure.number] = moment;
  ++failures_;
  all_failures_.push_back(now);
  if (is_any_away()) ++happened_[std::string(kWhileAway)];
  std::vector<NodeId> failing = run_->servers();
  const bool is_alone = failure.alone && failing.size() > 1;
  if (is_alone) {
    ++happened_[std::string(kOfOneServer)];
    failing = {static_cast<NodeId>(*failure.alone % failing.size())};
  }
  for (const NodeId node : failing) scenario_->stop_serving(node);
  const services::ServerFailure of_servers{
      now, is_alone ? std::optional(failing.front()) : std::nullopt};
  scenario_->note_failure(of_servers);
  const auto losing = [&] { losing_failures_.push_back(of_servers); };
  const std::string whose =
      is_alone ? fmt::format("server {}", failing.front()) : std::string("the servers");
  power_failed_last_ = failure.kind == Kind::power;
  if (failure.kind == Kind::power) {
    ++happened_[std::string(kPowerFailures)];
    losing();
    note(now, fmt::format("the power of {} fails", whose));
    const auto is_power = [](const PlannedFailure& later) { return later.kind == Kind::power; };
    const auto later = planned_.begin() + failures_;
    const bool is_last = std::none_of(later, planned_.end(), is_power);
    if (keeps_images_ && is_last && !is_alone) keep_what_is_left();
    MostIsSimplest image(tape_.stream(fmt::format("image-{}", failure.number)));
    platform_->fail_power(failing, image);
  } else {
    ++happened_[std::string(kProcessDeaths)];
    if (scenario_->loses_with_processes()) losing();
    note(now, fmt::format("the {} of {} {}", is_alone ? "process" : "processes", whose,
                          is_alone ? "dies" : "die"));
    for (const NodeId node : failing) platform_->kill(node);
  }
  for (const NodeId node : failing) away_[node] = is_alone ? failures_ : 0;
  const Time back = now + std::max(failure.away, power_failed_last_ ? Picoseconds{} : kRestart);
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

void GeneratedRun::count_quarter() {
  const std::uint64_t planned = planned_changes(failures_);
  if (planned == 0) return;
  const std::uint64_t quarter = counts_[Counted::changes] * kFailuresInQuarters.size() / planned;
  ++happened_[std::string(kFailuresInQuarters.at(std::min<std::uint64_t>(quarter, 3)))];
}

void GeneratedRun::keep_what_is_left() {
  Left left;
  left.failure = failures_ - 1;
  left.losing_failures = losing_failures_;
  bool several = false;
  for (NodeId node = 0; node < scenario_->servers(); ++node) {
    left.spaces.push_back(platform_->machine_of_node(node).images());
    several = several || !left.spaces.back().words().empty();
  }
  if (!several) return;
  for (NodeId node = 0; node < scenario_->servers(); ++node) {
    left.memories.push_back(platform_->machine_of_node(node).crashed(left.spaces[node]));
  }
  left_ = std::move(left);
  scenario_->take_snapshot();
}

GeneratedRun::ImagesTried GeneratedRun::try_images(
    std::uint64_t most, const std::function<bool(const services::Verdict&)>& fails) {
  ImagesTried tried;
  if (!left_ || !scenario_->problem().empty()) return tried;
  const Time begin = platform_->engine().now();
  run_.reset();  // what its threads know of the scenario goes with them
  scenario_->restore_snapshot();
  pmem::LazyImages images(std::move(left_->spaces), 1);
  std::set<std::string> known;
  while (images.runs() < most && images.next()) {
    scenario_->stop_serving();
    recover_from(images, *scenario_, profile_, begin, left_->memories);
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
      streams[fmt::format("image-{}", planned_[left_->failure].number)];
  image.clear();
  for (std::size_t space = 0; space < images.spaces().size(); ++space) {
    for (const auto& [taken, of] : images.choices(space)) image.push_back(of - 1 - taken);
  }
  for (std::size_t later = left_->failure + 1; later < planned_.size(); ++later) {
    streams[fmt::format("failure-{}", planned_[later].number)].clear();
  }
  const std::size_t epochs = planned_.size() + 1;
  for (auto& [name, choices] : streams) {
    if (stream_of(name) != StreamOf::clients) continue;
    choices.resize(places_of_epoch(choices.size(), epochs, left_->failure + 1).begin);
  }
  return streams;
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

void GeneratedRun::note_state(std::string_view event) {
  services::SystemState state;
  state.add(event, 1);
  state.add("power failed last", power_failed_last_ ? 1 : 0);
  state.add("failures", failures_);
  state.add("serves", scenario_->serves(platform_->engine().now()) ? 1 : 0);
  scenario_->describe(state);
  states_.insert(state.digest());
}

std::map<std::string, std::uint64_t> GeneratedRun::happened() const {
  auto all = happened_;
  for (const auto& [name, count] : scenario_->events()) all[name] += count;
  return all;
}

void GeneratedRun::note(Time when, std::string what) {
  events_.emplace_back(when, std::move(what));
}

ExplainedRun GeneratedRun::story() const {
  ExplainedRun run;
  run.servers = scenario_->servers();
  run.clients = scenario_->clients();
  run.calls = scenario_->calls();
  run.failures = all_failures_;
  run.events = events_in_order();
  return run;
}

GeneratedRun::Events GeneratedRun::events_in_order() const {
  Events ordered = events_;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return ordered;
}

std::string GeneratedRun::events() const {
  std::string text;
  for (const auto& [when, what] : events_in_order()) {
    text += fmt::format("  {:.3f} us: {}\n", to_microseconds(when.time_since_epoch()), what);
  }
  return text;
}

}  // namespace perdura::explore
