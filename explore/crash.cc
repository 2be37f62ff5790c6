#include "explore/crash.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "platform/base/error.h"

namespace perdura::explore {

namespace {

using services::Condition;
using services::kConditions;

// All subsets of size `size` of the numbers below `count`, in lexicographic order.
std::vector<std::vector<NodeId>> subsets(NodeId count, NodeId size) {
  std::vector<bool> chosen(count);
  std::fill_n(chosen.begin(), size, true);
  std::vector<std::vector<NodeId>> all;
  do {
    std::vector<NodeId>& nodes = all.emplace_back();
    for (NodeId node = 0; node < count; ++node) {
      if (chosen[node]) nodes.push_back(node);
    }
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return all;
}

// All that may fail at a crash point, one after the other.
std::vector<WhatFails> all_failures(const CrashOptions& options,
                                    const services::CrashScenario& scenario) {
  std::vector<WhatFails> all;
  const NodeId servers = scenario.servers();
  if (of_servers(options.failure)) {
    if (options.failing == 0 || options.failing == servers) return {{options.failure}};
    for (auto& nodes : subsets(servers, options.failing)) {
      all.push_back({.kind = options.failure, .servers = std::move(nodes)});
    }
    return all;
  }
  for (std::uint32_t client = 0; client < scenario.clients(); ++client) {
    if (options.failure == FailureKind::client) {
      // One on the node of a server dies with that.
      if (!scenario.has_node_of_its_own(client)) continue;
      all.push_back({.kind = options.failure, .client = client});
      continue;
    }
    for (const auto& [node, peer] : links_of(scenario, client)) {
      all.push_back({.kind = options.failure, .client = client, .link = {node, peer}});
      all.push_back({.kind = options.failure, .client = client, .link = {peer, node}});
    }
  }
  return all;
}

std::string names_of(std::span<const services::CrashSchedule> schedules) {
  std::vector<std::string_view> names;
  for (const services::CrashSchedule& schedule : schedules) names.push_back(schedule.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The name of a history in which this fails.
std::string text_of(const services::CrashSchedule& schedule, const WhatFails& failing,
                    NodeId servers) {
  switch (failing.kind) {
    case FailureKind::client:
      return fmt::format("{}, client {} dies", schedule.name, failing.client);
    case FailureKind::connection:
      return fmt::format("{}, the connection of node {} with node {} breaks", schedule.name,
                         failing.link.first, failing.link.second);
    case FailureKind::power:
    case FailureKind::process:
      break;
  }
  const std::string_view dies = failing.kind == FailureKind::process ? ", the process dies" : "";
  if (failing.servers.empty()) return fmt::format("{}{}", schedule.name, dies);
  return fmt::format("{}, of {} servers {} fails{}", schedule.name, servers,
                     fmt::join(failing.servers, " and "), dies);
}

void check_can_fail(std::string_view system, const CrashOptions& options,
                    const services::CrashScenario& scenario) {
  const NodeId servers = scenario.servers();
  const bool of_its_own = scenario.has_node_of_its_own(0);
  if (options.failure == FailureKind::connection && servers == 1 && !of_its_own) {
    throw UsageError(fmt::format(
        "{}'s clients are threads of its one server and have no connections; use --failure process",
        system));
  }
  if (options.failure == FailureKind::client && !of_its_own) {
    throw UsageError(fmt::format(
        "{}'s clients are threads of its servers' processes; use --failure process", system));
  }
  if (options.failing > servers) {
    throw UsageError(
        fmt::format("of {} {} server(s) cannot fail: it has {}", system, options.failing, servers));
  }
  const bool of_all = options.failing == 0 || options.failing == servers;
  if (options.recoveries == 0 && options.failure == FailureKind::power && !of_all) {
    throw UsageError("all images are tried only if the power of all servers fails");
  }
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
    check_can_fail(system.info.name, options, *scenario);
    for (const WhatFails& failing : all_failures(options, *scenario)) {
      const std::string name = text_of(schedule, failing, scenario->servers());
      all.push_back({schedule, {std::string(system.info.name), name, make, failing}});
    }
  }
  if (!all.empty()) return all;
  throw UsageError(fmt::format("service {} has no schedule '{}'; known are: {}",
                               system.service->name(), options.schedule, names_of(schedules)));
}

bool is_whole(const CrashOptions& options) {
  return options.failure == FailureKind::power && options.failing == 0 &&
         options.schedule.empty() && options.first == 0 && options.last == ~std::uint64_t{0} &&
         options.stride == 1;
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

}  // namespace

services::GuaranteeLevel CrashResult::strongest() const {
  return services::strongest_level(
      [this](services::Condition condition) { return guarantees[condition].held; });
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
        explore_history(one.history, profile, options.setup.model, of_history);
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
    const std::uint64_t all = system.service->sequences(run.operations);
    if (run.sequence >= all || !(run.failing == WhatFails{})) {
      throw UsageError(fmt::format("service {} has no sequence {} of {} operations",
                                   system.service->name(), run.sequence, run.operations));
    }
    const services::CrashSequence sequence =
        system.service->crash_sequence(system.info.name, setup, run.operations, run.sequence);
    return {std::string(system.info.name), sequence.name, sequence.make, {}};
  }
  const CrashOptions options{.setup = setup,
                             .schedule = run.schedule,
                             .failure = run.failing.kind,
                             .failing = static_cast<NodeId>(run.failing.servers.size())};
  for (ScheduledHistory& one : histories_of(system, options)) {
    if (one.history.failing == run.failing) return std::move(one.history);
  }
  throw UsageError(fmt::format("in schedule {} of {} no such {} can fail", run.schedule,
                               system.info.name, to_string(run.failing.kind)));
}

}  // namespace perdura::explore
