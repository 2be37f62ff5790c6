#include "explore/crash.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "explore/all_failures.h"
#include "platform/base/error.h"

namespace perdura::explore {

namespace {

using services::Condition;
using services::kConditions;

std::string names_of(std::span<const services::CrashSchedule> schedules) {
  std::vector<std::string_view> names;
  for (const services::CrashSchedule& schedule : schedules) names.push_back(schedule.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// A history of a schedule of the service.
struct ScheduledHistory {
  services::CrashSchedule schedule;
  History history;
};

std::vector<ScheduledHistory> histories_of(const services::ServedSystem& system,
                                           const CrashOptions& options) {
  std::vector<ScheduledHistory> all;
  const std::span<const services::CrashSchedule> schedules = system.service->schedules();
  for (const services::CrashSchedule& schedule : schedules) {
    const bool is_wanted =
        options.schedule.empty() ? schedule.usual : options.schedule == schedule.name;
    if (!is_wanted) continue;
    const auto make = system.service->crash_history(system.info.name, options.setup, schedule);
    if (!make) continue;  // the schedule is for other systems
    const std::unique_ptr<services::CrashScenario> scenario = make();
    check_can_fail(system.info.name, options.fails, options.recoveries, *scenario);
    for (const WhatFails& failing : all_failures(options.fails, *scenario)) {
      const std::string name = text_of(schedule.name, failing, scenario->servers());
      all.push_back({schedule, {std::string(system.info.name), name, make, failing}});
    }
  }
  if (!all.empty()) return all;
  throw UsageError(fmt::format("service {} has no schedule '{}'; known are: {}",
                               system.service->name(), options.schedule, names_of(schedules)));
}

bool is_whole(const CrashOptions& options) {
  return options.fails.are_of_all_power() && options.schedule.empty() && options.first == 0 &&
         options.last == ~std::uint64_t{0} && options.stride == 1;
}

void note_first(const Findings& findings, const ScheduledHistory& one, CrashResult& result) {
  for (const Condition condition : kConditions) {
    Guarantee& guarantee = result.guarantees[condition];
    if (findings.losses.holds(condition) || !guarantee.held) continue;
    guarantee = {false, findings.losses.why(condition),
                 LosingRun{.schedule = std::string(one.schedule.name),
                           .failing = one.history.failing,
                           .image = findings.failing[condition]}};
  }
}

History sequence_of(const services::ServedSystem& system, const services::CrashSetup& setup,
                    const LosingRun& run) {
  const services::Service& service = *system.service;
  if (run.sequence >= service.sequences(run.kind)) {
    throw UsageError(fmt::format("service {} has no sequence {} of {} operations{}", service.name(),
                                 run.sequence, run.kind.length,
                                 run.kind.at_once ? " at once" : ""));
  }
  const services::CrashSequence sequence =
      service.crash_sequence(system.info.name, setup, run.kind, run.sequence);
  const std::unique_ptr<services::CrashScenario> scenario = sequence.make();
  for (const WhatFails& failing : all_failures(failures_like(run.failing), *scenario)) {
    if (!(failing == run.failing)) continue;
    return {std::string(system.info.name), text_of(sequence.name, failing, scenario->servers()),
            sequence.make, failing};
  }
  throw UsageError(fmt::format("in sequences of {} no such {} can fail", system.info.name,
                               to_string(run.failing.kind)));
}

}  // namespace

services::GuaranteeLevel CrashResult::strongest() const {
  return services::strongest_level(
      [this](services::Condition condition) { return guarantees[condition].held; });
}

sim::Profile with_commits_if_needed(sim::Profile profile, const services::SystemInfo& system,
                                    const GivenParameters& parameters) {
  if (system.needs_with(parameters).commits) profile.nic.flush_persistence = true;
  return profile;
}

std::string refusal(const services::SystemInfo& system, const services::CrashSetup& setup,
                    const sim::NicProfile& nic) {
  if (setup.correct && !system.chooses_method) {
    return "has no method to choose";
  }
  const bool iwarp = setup.model.transport == pmem::Transport::iwarp;
  // RFC 5040 has no immediate data and no atomics.
  const fabric::Capabilities device{.flush = nic.flush,
                                    .flush_persistence = nic.flush_persistence,
                                    .atomic_write = nic.atomic_write,
                                    .commits = true,  // with_commits_if_needed()
                                    .write_with_immediate = !iwarp,
                                    .atomics = !iwarp};
  const std::string lacking = fabric::missing(system.needs_with(setup.parameters), device);
  if (lacking.empty()) return "";
  return fmt::format("needs {}, which {}", lacking,
                     iwarp ? "iWARP lacks" : "the devices of this profile lack");
}

CrashResult explore_crashes(const services::ServedSystem& system, const sim::Profile& profile,
                            const CrashOptions& options) {
  if (const std::string why = refusal(system.info, options.setup, profile.nic); !why.empty()) {
    throw UsageError(fmt::format("{} {}", system.info.name, why));
  }
  const sim::Profile devices =
      with_commits_if_needed(profile, system.info, options.setup.parameters);
  const std::vector<ScheduledHistory> histories = histories_of(system, options);
  CrashResult result;
  for (std::size_t done = 0; done < histories.size(); ++done) {
    ExploreOptions of_history{.most_recoveries = options.recoveries,
                              .seed = options.setup.seed,
                              .first = options.first,
                              .last = options.last,
                              .stride = options.stride,
                              .threads = options.threads};
    if (options.progress) {
      of_history.progress = [&](double share) {
        options.progress((static_cast<double>(done) + share) /
                         static_cast<double>(histories.size()));
      };
    }
    const ScheduledHistory& one = histories[done];
    const Findings findings =
        explore_history(one.history, devices, options.setup.model, of_history);
    result.crash_points += findings.crash_points;
    result.states += findings.states;
    result.coverage.add(findings.coverage);
    for (const auto& [name, count] : findings.events) result.events[name] += count;
    note_first(findings, one, result);
  }
  if (!is_whole(options)) return result;
  const std::unique_ptr<services::CrashScenario> scenario = histories.front().history.make();
  for (const services::Event& event : scenario->expected_events()) {
    if (event.in_long_histories || result.events[std::string(event.name)] > 0) continue;
    result.unexplored.emplace_back(event.name);
  }
  return result;
}

History history_of(const services::ServedSystem& system, const services::CrashSetup& setup,
                   const LosingRun& run) {
  if (run.schedule.empty()) {
    return sequence_of(system, setup, run);
  }
  const CrashOptions options{
      .setup = setup, .schedule = run.schedule, .fails = failures_like(run.failing)};
  for (ScheduledHistory& one : histories_of(system, options)) {
    if (one.history.failing == run.failing) return std::move(one.history);
  }
  throw UsageError(fmt::format("in schedule {} of {} no such {} can fail", run.schedule,
                               system.info.name, to_string(run.failing.kind)));
}

}  // namespace perdura::explore
