#include "explore/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace perdura::explore {

namespace {

// Failures and deaths happen within one of these times after an operation has begun or ended, or
// after the servers have begun to run; stalls after the run has begun. The short ones meet what
// happens within an operation, or recovery. A time is drawn in steps of a picosecond, since a flush
// may be all that lies between two of them.
constexpr std::array<std::size_t, 3> kWindows{std::size_t{Trigger::kLatest.count()},
                                              std::size_t{1} << 24,   // 17 us
                                              std::size_t{1} << 21};  // 2 us
// A failure follows one of this many beginnings and ends of operations, if it comes within kLatest.
constexpr std::size_t kMostChanges = 32;
// So many other choices let it follow one of the first few early observations, and as many one of
// the first few steps in which a server cleans or grows.
constexpr std::size_t kEarly = 16;
constexpr std::size_t kMostEarly = 4;
constexpr std::size_t kMostSteps = 16;
// And half as many as those changes let it follow the beginning, and what is recovered then.
constexpr std::size_t kOfBoth = kMostChanges + kMostChanges / 2;
constexpr std::size_t kTriggers = kOfBoth + kEarly + kMostSteps;
// As many further choices, or more if clients plan more than that, let it follow any beginning or
// end that clients plan, for which it waits: kLatest for each kChangesPerWait of them.
constexpr std::uint64_t kChangesPerWait = 4;
constexpr std::uint32_t kMostFailures = 3;
// A few runs have so many more: only another failure shows what an earlier one has left.
constexpr std::uint32_t kMoreFailures = 2;
// For how long a server that fails alone is away: less than others wait for it, about as long, or
// longer.
constexpr std::array<Picoseconds, 4> kAway{Picoseconds{}, Microseconds(100), Microseconds(500),
                                           Microseconds(2000)};
// A process is started again some time after its death, when the devices are done with what it had
// begun.
constexpr Picoseconds kRestart = Microseconds(100);
constexpr std::uint64_t kBackAtOnce = 0;  // which one of them; PowerFailure
constexpr std::uint64_t kStaysAway = 1;
constexpr std::size_t kOfAll = 3;  // so many of the choices are of all servers
constexpr std::size_t kAlone = 6;  // and so many of one, a multiple of two and of three servers

// Bits of what a schedule draws.
constexpr std::size_t kMessages = 1;
constexpr std::size_t kPlacements = 2;  // only with CrashSetup::late_placements
constexpr std::size_t kWholeSchedule = kMessages + kPlacements;
// Bits of where threads pause.
constexpr std::size_t kPosts = 1;
constexpr std::size_t kYields = 2;

Picoseconds drawn_delay(pmem::Choices& choices, std::span<const std::size_t> windows = kWindows) {
  const std::size_t window = windows[choices.choose(windows.size())];
  return Picoseconds(static_cast<std::int64_t>(choices.choose(window)));
}

Trigger drawn_trigger(pmem::Choices& choices, const services::CrashScenario& scenario,
                      std::size_t failures) {
  const std::size_t changes = planned_changes(scenario, failures);
  const std::size_t often = changes > 0 ? std::max<std::size_t>(kTriggers / changes, 1) : 0;
  const std::size_t drawn = choices.choose(kTriggers + often * changes);
  std::span<const std::size_t> windows = kWindows;
  Trigger trigger;
  if (drawn < kMostChanges) {
    trigger.number = drawn;
  } else if (drawn >= kTriggers) {
    trigger.number = 1 + (drawn - kTriggers) % changes;
    trigger.is_awaited = true;
  } else if (drawn >= kOfBoth + kEarly) {
    trigger.counted = Counted::steps;
    trigger.number = 1 + drawn - kOfBoth - kEarly;
    windows = windows.subspan(1);  // a step is short
  } else if (drawn >= kOfBoth) {
    trigger.counted = Counted::early_observations;
    trigger.number = 1 + (drawn - kOfBoth) % kMostEarly;
  }
  trigger.delay = drawn_delay(choices, windows);
  return trigger;
}

void draw_apart(pmem::Tape& tape, PlannedFailure& failure) {
  pmem::Choices& choices = tape.stream(fmt::format("apart-{}", failure.number));
  const std::size_t drawn = choices.choose(kOfAll + kAlone);
  if (drawn < kOfAll) return;
  failure.servers = {static_cast<NodeId>(drawn - kOfAll)};
  failure.away = kAway[choices.choose(kAway.size())];
}

std::vector<PlannedStall> drawn_stalls(pmem::Tape& tape, const services::CrashScenario& scenario) {
  constexpr std::uint32_t kMostStalls = 4;
  constexpr std::size_t kThreads = 6;  // threads of a node, over its restarts
  constexpr std::array<Picoseconds, 4> kLengths{Microseconds(1), Microseconds(5), Microseconds(25),
                                                Microseconds(100)};
  const NodeId nodes = scenario.servers() + scenario.clients();  // not the inspector's
  std::vector<PlannedStall> stalls;
  for (std::uint32_t number = 1; number <= kMostStalls; ++number) {
    pmem::Choices& choices = tape.stream(fmt::format("stall-{}", number));
    if (choices.choose(2) == 0) continue;
    const auto node = static_cast<NodeId>(choices.choose(nodes));
    const auto thread = static_cast<std::uint32_t>(choices.choose(kThreads));
    const auto part = static_cast<std::int64_t>(choices.choose(kMostFailures + 1));
    const Time begin = Time() + part * Trigger::kLatest + drawn_delay(choices);
    const Picoseconds length = kLengths[choices.choose(kLengths.size())];
    stalls.push_back({node, thread, {begin, begin + length}});
  }
  return stalls;
}

sim::SimPlatform::ScheduleChoices drawn_schedule(pmem::Tape& tape, bool late_placements) {
  // In runs drawn from a seed, a few messages of a few runs are late. Runs without late messages
  // are shrunk to far simpler ones.
  constexpr std::size_t kRarityOfRuns = 4;
  constexpr std::size_t kRarity = 24;
  // A server's background work takes long if many of its steps do.
  constexpr std::size_t kRarityOfYields = 2;
  const std::size_t whole = late_placements ? kWholeSchedule : kMessages;
  const std::size_t drawn = tape.stream("drawn", kRarityOfRuns).choose(whole + 1);
  const auto stream = [&](std::size_t bit, std::string_view name) -> pmem::Choices* {
    return (drawn & bit) != 0 ? &tape.stream(name, kRarity) : nullptr;
  };
  // Nothing but a thread that stands still between an answer and what it does next shows that the
  // answer came too early.
  const std::size_t paused = tape.stream("paused", kRarityOfRuns).choose(kPosts + kYields + 1);
  sim::ThreadChoices threads;
  if ((paused & kPosts) != 0) threads.posts = &tape.stream("pauses", kRarity);
  if ((paused & kYields) != 0) threads.yields = &tape.stream("yields", kRarityOfYields);
  return {.messages = stream(kMessages, "messages"),
          .devices = stream(kPlacements, "placements"),
          .threads = threads};
}

std::vector<PlannedDeath> drawn_deaths(pmem::Tape& tape, const services::CrashScenario& scenario) {
  constexpr std::uint32_t kMostDeaths = 2;
  std::vector<PlannedDeath> deaths;
  if (scenario.clients() == 0) return deaths;
  for (std::uint32_t number = 1; number <= kMostDeaths; ++number) {
    pmem::Choices& choices = tape.stream(fmt::format("death-{}", number));
    if (choices.choose(4) < 3) continue;
    const auto client = static_cast<NodeId>(choices.choose(scenario.clients()));
    const bool connection = choices.choose(2) == 1;
    const std::size_t failures = choices.choose(kMostFailures + 1);
    const Trigger trigger = drawn_trigger(choices, scenario, failures);
    std::optional<Link> broken;
    if (connection) {
      const std::vector<Link> links = links_of(scenario, client);
      if (links.empty()) continue;
      broken = links[links.size() == 1 ? 0 : choices.choose(links.size())];
    } else if (!scenario.has_node_of_its_own(client)) {
      continue;  // the server would die with it
    }
    deaths.push_back({client, broken, failures, trigger});
  }
  return deaths;
}

}  // namespace

StreamOf stream_of(std::string_view name) {
  if (name.starts_with("client-")) return StreamOf::clients;
  if (name == "messages" || name == "placements") return StreamOf::schedule;
  return name.starts_with("image-") ? StreamOf::image : StreamOf::rest;
}

Plan without_failure() {
  Plan plan;
  plan.clients_return = false;
  return plan;
}

Plan failing(const WhatFails& what, Picoseconds after) {
  Plan plan = without_failure();
  const Trigger trigger{.delay = after};
  if (of_servers(what.kind)) {
    plan.failures.push_back({.number = 1,
                             .is_of_power = what.kind == FailureKind::power,
                             .trigger = trigger,
                             .servers = what.servers});
  } else {
    PlannedDeath& death = plan.deaths.emplace_back();
    death.client = what.client;
    if (what.kind == FailureKind::connection) death.broken = what.link;
    death.trigger = trigger;
  }
  return plan;
}

pmem::Tape::Streams power_failures(std::span<const PowerFailure> failures) {
  constexpr std::uint64_t kHappens = 1;
  constexpr std::uint64_t kPowerFails = 0;
  constexpr std::uint64_t kAfterTheBeginning = 0;
  constexpr std::uint64_t kLongestWindow = 0;
  pmem::Tape::Streams streams{{"drawn", {kWholeSchedule}}};
  std::uint32_t number = 0;
  for (const PowerFailure& failure : failures) {
    ++number;
    const auto instant =
        static_cast<std::uint64_t>(std::min(failure.after, PowerFailure::kLatest).count());
    streams[fmt::format("failure-{}", number)] = {kHappens, kPowerFails, kAfterTheBeginning,
                                                  kLongestWindow, instant};
    std::vector<std::uint64_t>& apart = streams[fmt::format("apart-{}", number)];
    if (number > kMostFailures) streams["failures"] = {number - kMostFailures};
    if (failure.alone)
      apart = {kOfAll + *failure.alone, failure.stays_away ? kStaysAway : kBackAtOnce};
  }
  return streams;
}

std::uint64_t planned_changes(const services::CrashScenario& scenario, std::size_t failures) {
  return 2 * scenario.planned_calls(failures);
}

Picoseconds Trigger::patience() const {
  if (!is_awaited) return kLatest;
  return kLatest * static_cast<std::int64_t>(1 + number / kChangesPerWait);
}

Trigger trigger_after(std::uint64_t changed, Picoseconds delay, Picoseconds after) {
  return {Counted::changes, changed, delay, changed >= kMostChanges || after > Trigger::kLatest};
}

std::vector<std::uint64_t> choices_of(const Trigger& trigger, std::uint64_t changes) {
  constexpr std::uint64_t kLongestWindow = 0;
  const auto delay = static_cast<std::size_t>(trigger.delay.count());
  if (trigger.is_awaited && (trigger.number == 0 || trigger.number > changes)) return {};
  if (delay >= kWindows[kLongestWindow]) return {};
  const std::uint64_t drawn = trigger.is_awaited ? kTriggers + trigger.number - 1 : trigger.number;
  return {drawn, kLongestWindow, delay};
}

std::vector<PlannedFailure> drawn_failures(pmem::Tape& tape) {
  constexpr std::size_t kRarity = 16;
  constexpr std::size_t kProcessesDie = 3;
  std::vector<PlannedFailure> planned;
  const auto more =
      static_cast<std::uint32_t>(tape.stream("failures", kRarity).choose(1 + kMoreFailures));
  for (std::uint32_t number = 1; number <= kMostFailures + more; ++number) {
    pmem::Choices& choices = tape.stream(fmt::format("failure-{}", number));
    if (choices.choose(3) == 0) continue;
    // Usually the power fails; 0 is the plainest failure.
    PlannedFailure& failure = planned.emplace_back();
    failure.number = number;
    failure.is_of_power = choices.choose(4) != kProcessesDie;
    draw_apart(tape, failure);
    if (!failure.is_of_power) failure.away = std::max(failure.away, kRestart);
  }
  return planned;
}

std::vector<Link> links_of(const services::CrashScenario& scenario, std::uint32_t client) {
  std::vector<Link> links;
  const NodeId node = scenario.node_of_client(client);
  for (NodeId server = 0; server < scenario.servers(); ++server) {
    if (scenario.has_node_of_its_own(client)) {
      links.emplace_back(node, server);
    } else {
      for (NodeId peer = server + 1; peer < scenario.servers(); ++peer) {
        links.emplace_back(server, peer);
      }
    }
  }
  return links;
}

Plan drawn_plan(pmem::Tape& tape, std::vector<PlannedFailure> failures,
                const services::CrashScenario& scenario, bool late_placements) {
  Plan plan{.failures = std::move(failures),
            .deaths = drawn_deaths(tape, scenario),
            .stalls = drawn_stalls(tape, scenario),
            .schedule = drawn_schedule(tape, late_placements)};
  for (std::size_t before = 0; before < plan.failures.size(); ++before) {
    PlannedFailure& failure = plan.failures[before];
    static_assert(kTriggerOfFailure == 2);
    failure.trigger =
        drawn_trigger(tape.stream(fmt::format("failure-{}", failure.number)), scenario, before);
    if (scenario.servers() == 1) failure.servers.clear();
    for (NodeId& server : failure.servers) server %= scenario.servers();
  }
  return plan;
}

}  // namespace perdura::explore
