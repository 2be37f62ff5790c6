// The plan of a run (scenario_run.h): which threads stall, which clients die, when the servers
// fail, how, and for how long they are away. A plan is data that can be read without running
// anything. The plan of a fixed history has one failure, at a crash point (failing()), or none
// (without_failure()). The plan of a generated run (generated_run.h) is drawn from its tape before
// the run begins. The clients' operations are not part of a plan: the scenario has them
// (services/crash.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/pmem/model/tape.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

// The kinds of failures of an exploration.
enum class FailureKind : std::uint8_t {
  power,    // the power of servers: what may be lost is up to the persistence model
  process,  // servers' processes: what they stored survives, flushed or not, and they start again
  client,   // the process of a client, which does not come back
  connection,  // the connection of a client with a server; both live on
};

constexpr std::string_view kFailureKinds[] = {"power", "process", "client", "connection"};
constexpr std::string_view to_string(FailureKind kind) {
  return kFailureKinds[static_cast<int>(kind)];
}

// True if servers go down and recover. Otherwise nothing that a client was told may be lost.
constexpr bool of_servers(FailureKind kind) {
  return kind == FailureKind::power || kind == FailureKind::process;
}

// Events that a run counts from the time when the servers began to run, or when a store that has
// to be filled first was full.
enum class Counted : std::uint8_t {
  changes,             // operations that have begun or ended
  early_observations,  // services::CrashScenario::early_observations()
  steps,               // services::CrashScenario::steps_begun()
};

// Says when something planned happens: `delay` after the `number`-th counted event, or, if `number`
// is 0, `delay` after the count began. Because the time is relative to an event, a failure keeps
// its place when operations are left out of the run.
struct Trigger {
  // Upper bound of a `delay` that is drawn.
  static constexpr Picoseconds kLatest{std::int64_t{1} << 27};  // 134 us

  Counted counted = Counted::changes;
  std::uint64_t number = 0;
  Picoseconds delay{};
  bool is_awaited = false;  // the event may come later than kLatest

  // Returns how long the run waits for the event. After that the planned thing happens anyway.
  Picoseconds patience() const;
};

struct PlannedFailure {
  std::uint32_t number = 0;  // N in the names of its streams
  bool is_of_power = true;   // otherwise the servers' processes die
  Trigger trigger{};
  std::vector<NodeId> servers{};  // those that fail; empty: all
  // How long they are away. When the power of all has failed, it is back at once.
  Picoseconds away{};
};

using Link = std::pair<NodeId, NodeId>;
struct PlannedDeath {
  std::uint32_t client = 0;
  std::optional<Link> broken{};  // if set: their connections break, the client lives on
  std::size_t failures = 0;      // number of server failures before it
  Trigger trigger{};
};

struct PlannedStall {
  NodeId node{};
  std::uint32_t thread = 0;  // number among the node's threads
  sim::Stall stall{};
};

struct Plan {
  std::vector<PlannedFailure> failures{};
  std::vector<PlannedDeath> deaths{};
  std::vector<PlannedStall> stalls{};  // in the order in which they were drawn
  // The streams of the tape from which the delays of messages, devices and threads are drawn.
  sim::SimPlatform::ScheduleChoices schedule{};
  // After each failure but the last the clients connect again and go on. Otherwise each uses the
  // servers once.
  bool clients_return = true;
};

// The failure at a crash point of a fixed history.
struct WhatFails {
  FailureKind kind = FailureKind::power;
  std::vector<NodeId> servers{};  // those that fail; empty: all
  std::uint32_t client = 0;       // the one that dies, or because of which a connection breaks
  Link link{};                    // the nodes whose connections break; the first knows at once

  bool is_power_of_all() const { return kind == FailureKind::power && servers.empty(); }
  friend bool operator==(const WhatFails&, const WhatFails&) = default;
};
// Returns the plan of a fixed history without a failure.
Plan without_failure();
// Returns the plan of a fixed history with one failure, `after` the servers began to run, or
// `after` the store was full if it has to be filled first.
Plan failing(const WhatFails& what, Picoseconds after);

// Draws the failures of a plan, without their triggers. They are drawn before the scenario, because
// their number decides which scenario is generated. The scenario then decides which events a
// failure can follow and how many servers there are. So a failure of one server alone holds an
// arbitrary number here, which drawn_plan() takes modulo the number of servers.
std::vector<PlannedFailure> drawn_failures(pmem::Tape& tape);
// Completes the plan of a run of this scenario.
Plan drawn_plan(pmem::Tape& tape, std::vector<PlannedFailure> failures,
                const services::CrashScenario& scenario, bool late_placements);

// Returns the pairs of nodes whose connections may break because of a client. If the client has its
// own node, these are its node and each server. If it runs on a server, they are all pairs of
// servers, since it waits for messages between servers.
std::vector<Link> links_of(const services::CrashScenario& scenario, std::uint32_t client);

// The number of beginnings and ends of the calls that clients plan after so many failures.
std::uint64_t planned_changes(const services::CrashScenario& scenario, std::size_t failures);

// The index of the choice in a stream failure-N that says which event the failure follows.
inline constexpr std::size_t kTriggerOfFailure = 2;
// Returns the choices that draw this trigger, to be put at that index of the stream and after it;
// empty if the trigger cannot be drawn.
// `changes`: planned_changes() of the failure.
std::vector<std::uint64_t> choices_of(const Trigger& trigger, std::uint64_t changes);
// Returns the trigger of a failure that happens now. Since the count began, operations have begun
// or ended `changed` times, and the last time was `delay` ago. `after` is the time that has passed
// since ScenarioRun::planned_at().
Trigger trigger_after(std::uint64_t changed, Picoseconds delay, Picoseconds after);

// A failure of power, for callers that choose it instead of drawing it: of all servers, or of one
// alone, which is back at once or after 100 us.
struct PowerFailure {
  Picoseconds after{};  // time since the servers began to run; kLatest at most
  std::optional<NodeId> alone{};
  bool stays_away = false;

  static constexpr Picoseconds kLatest = Trigger::kLatest - Picoseconds(1);
};
// The streams of class `rest` of a run in which the delays of messages and devices are drawn, no
// thread stalls, no client dies, and these failures happen, one after the other.
pmem::Tape::Streams power_failures(std::span<const PowerFailure> failures);

// Classes of streams, for explorations that decide the choices of each class in its own way.
enum class StreamOf : std::uint8_t { clients, schedule, image, rest };
StreamOf stream_of(std::string_view name);

// The places of a client's stream that say what it does between two failures of the servers: those
// with the numbers `begin` to `end` - 1.
struct EpochPlaces {
  std::size_t begin = 0;
  std::size_t end = 0;
};
// Returns the places of one epoch in a stream that has `choices` choices, all those of the run. A
// run has one epoch more than it has failures. A client draws some choices once at the beginning,
// and then the same number for each epoch.
constexpr EpochPlaces places_of_epoch(std::size_t choices, std::size_t epochs, std::size_t epoch) {
  const std::size_t length = choices / epochs;
  const std::size_t begin = choices % epochs + epoch * length;
  return {begin, begin + length};
}

}  // namespace perdura::explore
