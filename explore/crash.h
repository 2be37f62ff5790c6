// Finds by exploration what a completed operation of a system really guarantees when its servers'
// power fails. The small histories that the system's service provides (services/crash.h) are run
// with a power failure at every crash point, and servers recover from several of the images that
// each may leave (explorer.h). After recovery an inspector reads what is left.
//
// Instead of power, the servers' processes may die, or a client, or a connection may break
// (CrashOptions::fails). Then there is nothing to choose at a crash point, and every system is
// expected to be durable: memory holds what was stored, flushed or not.
//
//   const CrashResult result = explore_crashes(system, profile, options);
//   const Guarantee& durable = result[Condition::durable];
//   if (!durable.held) puts(durable.first_loss.c_str());
//
// Five conditions are judged; services/verdict.h defines them.
//
// A guarantee that is found not to hold is refuted: the first loss is the counterexample. One that
// held in all runs held for these histories, crash points and images only; CrashResult says how
// many they were. The same options give the same result on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "explore/all_failures.h"
#include "explore/explorer.h"
#include "platform/sim/kernel/profile.h"
#include "services/guarantee.h"
#include "services/service.h"
#include "services/verdict.h"

namespace perdura::explore {

// The number of recoveries at a crash point that explorations try if nothing else is said.
inline constexpr std::uint64_t kUsualRecoveries = 12;

struct CrashOptions {
  services::CrashSetup setup;
  // See ExploreOptions; 0 only if the power of all servers fails.
  std::uint64_t recoveries = kUsualRecoveries;
  std::uint64_t first = 0;  // crash point to try: to resume an exploration or to replay a loss
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;  // tries only every stride-th crash point
  // Restricts the exploration to this schedule of the service; empty: all schedules. Crash points
  // are numbered from 0 in each schedule.
  std::string schedule{};
  Failures fails{};
  unsigned threads = 0;  // 0: one per hardware thread of the host
  // Called by all threads with the fraction of the exploration that is done, from 0 to 1. An
  // exception that it throws ends the exploration.
  std::function<void(double share)> progress{};
};

// A run of a fixed history with a failure, by which it can be repeated. Its history is a schedule of
// the service, or one of its sequences of operations.
struct LosingRun {
  std::string schedule{};         // by name; empty if it is a sequence
  services::SequenceKind kind{};  // if it is a sequence
  std::uint64_t sequence = 0;     // its number among those of its kind
  WhatFails failing{};
  FailingImage image{};
};

struct Guarantee {
  bool held = true;
  // Describes the first run in which the guarantee did not hold, as text of several lines: what was
  // done, where the failure was, and what was found.
  std::string first_loss;
  std::optional<LosingRun> losing_run{};  // that run, if there was one
};

struct CrashResult {
  std::uint64_t crash_points = 0;  // the crash points of all histories together
  std::uint64_t states = 0;        // different findings of recovery, summed over the crash points
  ImageCoverage coverage;
  // Counts of the events in the runs without a failure (services::CrashScenario::events()), and of
  // those in recoveries (services::Event::in_recovery).
  std::map<std::string, std::uint64_t, std::less<>> events;
  // The events that the system was expected to meet but never met. If there are any, the
  // exploration has failed, since it says nothing about them. Always empty unless failures of the
  // power of all servers were explored at all crash points of all schedules.
  std::vector<std::string> unexplored;
  services::PerCondition<Guarantee> guarantees;

  const Guarantee& operator[](services::Condition condition) const { return guarantees[condition]; }

  // The strongest level all of whose conditions held; never "visible".
  services::GuaranteeLevel strongest() const;
};

// The profile, with devices that commit if the system needs that. No real device does, as none has
// APPEND, so this makes no difference between profiles; and times are no result of explorations.
// All of them are made with it.
sim::Profile with_commits_if_needed(sim::Profile profile, const services::SystemInfo& system,
                                    const GivenParameters& parameters);

// Returns why a system cannot be explored with this setup, as a phrase that follows its name:
// "has no method to choose", or "needs atomics, which iWARP lacks". Empty if it can.
std::string refusal(const services::SystemInfo& system, const services::CrashSetup& setup,
                    const sim::NicProfile& nic);

// Throws UsageError if refusal() has a reason, if the system does not take the parameters, if no
// method is right on the server, or if its service has no such schedule; PlatformError if the
// system fails without a power failure; services::Undecided if the judge gave up on a history.
CrashResult explore_crashes(const services::ServedSystem& system, const sim::Profile& profile,
                            const CrashOptions& options);

// Returns the history of a run, and what fails in it. Throws UsageError if the system has
// no such history, or if nothing like this can fail in it.
History history_of(const services::ServedSystem& system, const services::CrashSetup& setup,
                   const LosingRun& run);

}  // namespace perdura::explore
