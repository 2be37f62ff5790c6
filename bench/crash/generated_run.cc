#include "bench/crash/generated_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "platform/base/error.h"

namespace perdura::bench {

namespace {

// In virtual time: a system that has not served the inspector by then is assumed never to do so.
constexpr Picoseconds kPatience = std::chrono::seconds(2);
// Failures and stalls begin within this time of what they are meant to hit. It is drawn in steps of
// a picosecond, since a flush may be all that lies between two of them.
constexpr std::size_t kWindow = std::size_t{1} << 27;  // 134 us
// Ports of an epoch's clients differ from those of the epoch before, whose threads may still be
// finding out that the server has gone.
constexpr std::uint32_t kPortsOfEpoch = 64;
constexpr std::uint32_t kMostFailures = 3;
// A process is started again some time after its death, when the devices are done with what it had
// begun.
constexpr Picoseconds kRestart = Microseconds(100);

// Bits of what a schedule draws.
constexpr std::size_t kMessages = 1;
constexpr std::size_t kDevices = 2;
constexpr std::size_t kTasks = 4;
constexpr std::size_t kWholeSchedule = kMessages + kDevices + kTasks;

Picoseconds drawn_time(pmem::Choices& choices) {
  return Picoseconds(static_cast<std::int64_t>(choices.choose(kWindow)));
}

}  // namespace

StreamOf stream_of(std::string_view name) {
  if (name == "clients") return StreamOf::clients;
  if (name == "messages" || name == "devices" || name == "tasks") return StreamOf::schedule;
  return name.starts_with("image-") ? StreamOf::image : StreamOf::rest;
}

pmem::Tape::Streams one_power_failure(Time when) {
  constexpr std::uint64_t kPowerFails = 0;
  const auto instant = static_cast<std::uint64_t>(when.time_since_epoch().count());
  return {{"drawn", {kWholeSchedule}},
          {"failures", {1, kPowerFails, std::min<std::uint64_t>(instant, kWindow - 1)}}};
}

GeneratedRun::GeneratedRun(const services::ServedSystem& system, const sim::Profile& profile,
                           const services::CrashSetup& setup, pmem::Tape& tape)
    : tape_(tape),
      failures_planned_(
          static_cast<std::uint32_t>(tape.stream("failures").choose(kMostFailures + 1))),
      scenario_(system.service->generated_scenario(system.info.name, setup, tape.stream("clients"),
                                                   failures_planned_)),
      platform_(std::make_unique<sim::SimPlatform>(
          profile, std::vector<sim::NodesOfRole>{{"server", scenario_->servers()},
                                                 {"client", scenario_->clients() + 1}})) {
  platform_->track_durability(setup.model);
}

void GeneratedRun::begin() {
  draw_stalls();
  draw_schedule();
  draw_deaths();
  start_servers();
  start_clients();
  start_inspector();
  if (failures_planned_ > 0) {
    schedule_failure();
  } else {
    ready_to_inspect_ = true;
  }
  try {
    platform_->run();
  } catch (const std::exception& error) {
    scenario_->note_problem(error.what());
  }
}

services::CrashVerdict GeneratedRun::run(const services::CrashLevels& levels) {
  begin();
  if (!disturbed_ && !client_problem_.empty()) scenario_->note_problem(client_problem_);
  return scenario_->judge(power_failures_, levels);
}

void GeneratedRun::draw_stalls() {
  constexpr std::size_t kMostStalls = 4;
  constexpr std::size_t kThreads = 6;  // of a node, over its restarts
  constexpr std::array<Picoseconds, 4> kLengths{Microseconds(1), Microseconds(5), Microseconds(25),
                                                Microseconds(100)};
  pmem::Choices& choices = tape_.stream("stalls");
  std::map<std::pair<NodeId, std::uint32_t>, std::vector<sim::Stall>> stalls;
  for (std::size_t count = choices.choose(kMostStalls + 1); count > 0; --count) {
    const auto node = static_cast<NodeId>(choices.choose(inspector()));
    const auto thread = static_cast<std::uint32_t>(choices.choose(kThreads));
    const Time begin = Time() + drawn_time(choices);
    const Picoseconds length = kLengths[choices.choose(kLengths.size())];
    stalls[{node, thread}].push_back({begin, begin + length});
    note(begin, fmt::format("thread {} of node {} stalls for {:.0f} us", thread, node,
                            to_microseconds(length)));
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

void GeneratedRun::draw_schedule() {
  // Of what is drawn from a seed: a few of the messages of a run are late.
  constexpr std::size_t kRarity = 24;
  const std::size_t drawn = tape_.stream("drawn").choose(kWholeSchedule + 1);
  const auto stream = [&](std::size_t bit, std::string_view name) -> pmem::Choices* {
    return (drawn & bit) != 0 ? &tape_.stream(name, kRarity) : nullptr;
  };
  platform_->choose_schedule({.messages = stream(kMessages, "messages"),
                              .devices = stream(kDevices, "devices"),
                              .tasks = stream(kTasks, "tasks")});
}

void GeneratedRun::list_moments(std::function<bool()> begins) {
  moments_begin_ = std::move(begins);
  platform_->list_moments();
  platform_->between_events([this] { note_moment(); });
  begin();
}

// Called between events: a client may have gone on in the last one.
void GeneratedRun::note_moment() {
  const Time now = platform_->engine().now();
  if (!moments_from_ && moments_begin_()) moments_from_ = now;
  std::uint64_t steps = 0;
  for (NodeId node = first_client(); node < inspector(); ++node) steps += platform_->steps(node);
  if (std::exchange(client_steps_, steps) != steps) note_moment_before(now);
}

void GeneratedRun::note_moment_before(Time when) {
  constexpr Picoseconds kInstant{1};
  if (moments_from_ && when > *moments_from_) moments_.insert(when - kInstant);
}

void GeneratedRun::draw_deaths() {
  pmem::Choices& choices = tape_.stream("deaths");
  for (std::size_t count = choices.choose(4) / 2; count > 0; --count) {
    const NodeId node = first_client() + static_cast<NodeId>(choices.choose(scenario_->clients()));
    const Time when = Time() + drawn_time(choices);
    const bool connection = choices.choose(2) == 1;
    platform_->at(when, [this, node, when, connection] {
      disturbed_ = true;
      const NodeId client = node - first_client();
      if (connection) {
        note(when, fmt::format("the connection of client {} breaks", client));
        platform_->break_connections({node, port_of(node)}, {0, 0});
      } else {
        note(when, fmt::format("client {} dies", client));
        platform_->kill(node);
      }
    });
  }
}

void GeneratedRun::schedule_failure() {
  pmem::Choices& choices = tape_.stream("failures");
  // Usually the power fails; 0 is the plainest failure.
  const Kind kind = choices.choose(4) == 3 ? Kind::process : Kind::power;
  const Time when = platform_->engine().now() + drawn_time(choices);
  platform_->at(when, [this, kind] { fail(kind); });
}

void GeneratedRun::fail(Kind kind) {
  disturbed_ = true;
  const Time now = platform_->engine().now();
  if (moments_begin_) {
    for (const Time moment : platform_->moments()) note_moment_before(std::min(moment, now));
    note_moment_before(now);
    return end_clients();
  }
  ++failures_;
  if (kind == Kind::power) {
    power_failures_.push_back(now);
    note(now, "the power of the servers fails");
    pmem::Choices& image = tape_.stream(fmt::format("image-{}", failures_));
    std::vector<NodeId> servers(scenario_->servers());
    std::iota(servers.begin(), servers.end(), NodeId{0});
    platform_->fail_power(servers, image);
    restart();
  } else {
    note(now, "the servers' processes die");
    for (NodeId node = 0; node < scenario_->servers(); ++node) platform_->kill(node);
    platform_->at(now + kRestart, [this] { restart(); });
  }
}

void GeneratedRun::restart() {
  start_servers();
  start_clients();
  if (failures_ < failures_planned_) return schedule_failure();
  ready_to_inspect_ = true;
  platform_->at(platform_->engine().now() + kPatience, [this] {
    scenario_->note_problem("the system does not answer any more");
    end_clients();
  });
}

// And the inspector.
void GeneratedRun::end_clients() {
  for (NodeId node = first_client(); node <= inspector(); ++node) platform_->kill(node);
}

void GeneratedRun::start_servers() {
  for (NodeId node = 0; node < scenario_->servers(); ++node) {
    platform_->start_service(node, 0, CompletionMode::polling,
                             [this](Thread& thread) { return serve(thread); });
  }
}

void GeneratedRun::start_clients() {
  for (std::uint32_t number = 0; number < scenario_->clients(); ++number) {
    const NodeId node = first_client() + number;
    platform_->start(node, port_of(node), CompletionMode::polling,
                     [this, number](Thread& thread) { return use(thread, number); });
  }
}

fabric::Port GeneratedRun::port_of(NodeId client) const {
  return static_cast<fabric::Port>(1 + failures_ * kPortsOfEpoch + client);
}

void GeneratedRun::start_inspector() {
  platform_->start(inspector(), static_cast<fabric::Port>(inspector()), CompletionMode::polling,
                   [this](Thread& thread) { return inspect(thread); });
}

Task<> GeneratedRun::serve(Thread& thread) {
  try {
    co_await scenario_->serve(thread);
  } catch (const std::exception& error) {
    scenario_->note_problem(fmt::format("recovery fails: {}", error.what()));
  }
}

Task<> GeneratedRun::use(Thread& thread, std::uint32_t number) {
  const services::CrashScenario::AtWork at_work(*scenario_);
  try {
    co_await scenario_->use(thread, number);
  } catch (const PlatformError& error) {
    if (client_problem_.empty()) client_problem_ = error.what();
  }
}

// Begins when the last failure has been and no client is at work any more.
Task<> GeneratedRun::inspect(Thread& thread) {
  constexpr Picoseconds kLook = Microseconds(20);
  while (!ready_to_inspect_ || scenario_->clients_at_work() > 0) {
    co_await sleep_for(kLook);
  }
  try {
    co_await scenario_->inspect(thread);
  } catch (const PlatformError& error) {
    scenario_->note_problem(error.what());
  }
}

void GeneratedRun::note(Time when, std::string what) {
  events_.emplace_back(when, std::move(what));
}

std::string GeneratedRun::events() const {
  auto ordered = events_;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [when, what] : ordered) {
    text += fmt::format("  {:.3f} us: {}\n", to_microseconds(when.time_since_epoch()), what);
  }
  return text;
}

}  // namespace perdura::bench
