#include "explore/crash.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "explore/crash_run.h"
#include "explore/explanation/explanation.h"
#include "platform/base/error.h"
#include "services/linearizability.h"

namespace perdura::explore {

namespace {

void note_first(Guarantee& guarantee, const std::string& loss,
                const std::optional<LosingRun>& run = std::nullopt) {
  if (loss.empty() || !guarantee.held) return;
  guarantee.held = false;
  guarantee.first_loss = loss;
  guarantee.losing_run = run;
}

void note(Guarantee& guarantee, const LosingRun& run, const std::string& where,
          const std::string& why) {
  if (!why.empty()) note_first(guarantee, where + "\n" + why, run);
}

void check_without_failure(std::string_view system, const services::CrashScenario& scenario,
                           const services::Attend& attend) {
  services::ToJudge judged = services::ToJudge::all();
  judged.attend = attend;
  const services::Verdict verdict = scenario.judge({}, judged);
  if (verdict.holds_all()) return;
  throw PlatformError(fmt::format("{} fails already without a failure: {}", system,
                                  verdict.why(services::Condition::durable)));
}

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
std::vector<WhatFails> all_failures(const CrashOptions& options, NodeId servers,
                                    std::uint32_t clients) {
  std::vector<WhatFails> all;
  if (of_servers(options.failure)) {
    for (auto& nodes : subsets(servers, options.failing == 0 ? servers : options.failing)) {
      all.push_back({options.failure, std::move(nodes)});
    }
    return all;
  }
  for (std::uint32_t client = 0; client < clients; ++client) {
    if (options.failure == FailureKind::client) {
      all.push_back({options.failure, {}, client});
      continue;
    }
    for (NodeId server = 0; server < servers; ++server) {
      for (const bool server_first : {false, true}) {
        all.push_back({options.failure, {server}, client, server_first});
      }
    }
  }
  return all;
}

std::string names_of(std::span<const services::CrashSchedule> schedules) {
  std::vector<std::string_view> names;
  for (const services::CrashSchedule& schedule : schedules) names.push_back(schedule.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string what_happens(const WhatFails& failing) {
  switch (failing.kind) {
    case FailureKind::power:
      return "the power of the servers fails";
    case FailureKind::process:
      return "the servers' processes die";
    case FailureKind::client:
      return fmt::format("client {} dies", failing.client);
    case FailureKind::connection:
      return fmt::format("the connection of client {} breaks", failing.client);
  }
  return "";
}

class Exploration {
 public:
  Exploration(const services::ServedSystem& system, const sim::Profile& profile,
              const CrashOptions& options)
      : system_(system), profile_(profile), options_(options) {
    if (const std::string why = refusal(system.info, options.setup, profile.nic); !why.empty()) {
      throw UsageError(fmt::format("{} {}", system.info.name, why));
    }
    for (const services::CrashSchedule& schedule : system.service->schedules()) {
      if (!options.schedule.empty() && options.schedule != schedule.name) continue;
      const auto make = system.service->crash_history(system.info.name, options.setup, schedule);
      const NodeId servers = make()->servers();
      if (options.failure == FailureKind::connection && servers == 1 &&
          !make()->has_node_of_its_own(0)) {
        throw UsageError(fmt::format(
            "{}'s clients are threads of its one server and have no connections; use --failure "
            "process",
            system.info.name));
      }
      if (options.failure == FailureKind::client && !make()->has_node_of_its_own(0)) {
        throw UsageError(
            fmt::format("{}'s clients are threads of its servers' processes; use --failure process",
                        system.info.name));
      }
      if (options.failing > servers) {
        throw UsageError(fmt::format("of {} {} server(s) cannot fail: it has {}", system.info.name,
                                     options.failing, servers));
      }
      for (WhatFails& what : all_failures(options, servers, make()->clients())) {
        cases_.push_back({schedule, make, servers, std::move(what), {}});
      }
    }
    if (cases_.empty()) {
      throw UsageError(fmt::format("service {} has no schedule '{}'; known are: {}",
                                   system.service->name(), options.schedule,
                                   names_of(system.service->schedules())));
    }
  }

  CrashResult explore() {
    if (options_.recoveries) return explore_all_images();
    const bool has_images = options_.failure == FailureKind::power;
    const auto passes = cases_.size() * (has_images ? 2 + options_.random_images : 1);
    for (Case& one : cases_) {
      explored_ = {};
      const auto explore = [&](sim::Images which, std::uint64_t seed) {
        return pass(one, which, seed, passes);
      };
      const std::uint64_t crash_points = explore(sim::Images::least, 0);
      result_.crash_points += crash_points;
      if (!has_images) continue;
      explore(sim::Images::most, 0);
      for (std::uint32_t i = 0; i < options_.random_images; ++i) {
        explore(sim::Images::random, options_.setup.seed * options_.random_images + i);
      }
    }
    std::set<std::uint64_t> all;
    for (const Case& one : cases_) all.insert(one.images.begin(), one.images.end());
    result_.images = all.size();
    if (is_whole()) note_unexplored();
    return result_;
  }

 private:
  // A history and what fails in it.
  struct Case {
    services::CrashSchedule schedule;
    services::CrashHistory make;
    NodeId servers;
    WhatFails failing;
    // Digests of the images that were tried. The image that keeps least, the one that keeps most
    // and a random one are often the same.
    std::set<std::uint64_t> images;

    std::string text() const {
      switch (failing.kind) {
        case FailureKind::client:
          return fmt::format("{}, client {} dies", schedule.name, failing.client);
        case FailureKind::connection:
          return fmt::format("{}, the connection of client {} with server {} breaks at the {}",
                             schedule.name, failing.client, failing.servers.front(),
                             failing.server_first ? "server" : "client");
        case FailureKind::power:
        case FailureKind::process:
          break;
      }
      const std::string_view dies =
          failing.kind == FailureKind::process ? ", the process dies" : "";
      if (failing.servers.size() == servers) return fmt::format("{}{}", schedule.name, dies);
      return fmt::format("{}, of {} servers {} fails{}", schedule.name, servers,
                         fmt::join(failing.servers, " and "), dies);
    }
  };

  CrashResult explore_all_images() {
    if (options_.failure != FailureKind::power) {
      throw UsageError(
          fmt::format("a failure of a {} leaves one image", to_string(options_.failure)));
    }
    result_.coverage.emplace();
    for (const Case& one : cases_) {
      if (one.failing.servers.size() != one.servers) {
        throw UsageError("images are tried without the history if all servers fail at once");
      }
      ImageOptions images{.most_recoveries = *options_.recoveries,
                          .seed = options_.setup.seed,
                          .first = options_.first,
                          .last = options_.last,
                          .stride = options_.stride,
                          .threads = options_.threads};
      if (options_.progress) {
        images.progress = [this](double share) {
          const auto done = static_cast<double>(passes_done_);
          options_.progress((done + share) / static_cast<double>(cases_.size()));
        };
      }
      const ImageFindings found =
          explore_images(one.make, profile_, options_.setup.model, one.text(), images,
                         [&](const services::CrashScenario& scenario) {
                           check_without_failure(system_.info.name, scenario, attend());
                           for (const auto& [name, count] : scenario.events())
                             result_.events[name] += count;
                           for (const services::Event& event : scenario.expected_events()) {
                             if (event.in_recovery) result_.events.erase(std::string(event.name));
                           }
                         });
      ++passes_done_;
      result_.crash_points += found.crash_points;
      result_.coverage->add(found.coverage);
      for (const services::Condition condition : services::kConditions) {
        note_first(result_.guarantees[condition], found.losses.why(condition));
      }
    }
    if (is_whole()) note_unexplored();
    return result_;
  }

  // Tries every crash point of a case once, with images of one kind. Returns the number of crash
  // points.
  std::uint64_t pass(Case& one, sim::Images which, std::uint64_t seed, std::size_t passes) {
    images_ = which;
    image_seed_ = seed;
    explored_ = sim::explore_failures(
        {.images = which,
         .seed = seed,
         .first = options_.first,
         .last = options_.last,
         .stride = options_.stride,
         .before = &explored_,
         .progress =
             [&](std::uint64_t tried, std::uint64_t all) {
               if (!options_.progress) return;
               const double of_pass = static_cast<double>(tried) / static_cast<double>(all);
               share_ = (static_cast<double>(passes_done_) + of_pass) / static_cast<double>(passes);
               options_.progress(share_);
             }},
        [&](sim::Failure& failure) { run(one, failure, which == sim::Images::least); });
    ++passes_done_;
    result_.runs += explored_.runs + explored_.known + explored_.impossible;
    return explored_.crash_points;
  }

  bool is_whole() const {
    return options_.failure == FailureKind::power && options_.schedule.empty() &&
           options_.first == 0 && options_.last == ~std::uint64_t{0} && options_.stride == 1;
  }
  void note_unexplored() {
    for (const services::Event& event : cases_.front().make()->expected_events()) {
      if (options_.recoveries && event.in_recovery) continue;  // not counted
      if (event.in_long_histories) continue;
      if (result_.events[std::string(event.name)] > 0) continue;
      result_.unexplored.emplace_back(event.name);
    }
  }

  // Lets the caller end an exploration while a history is being judged.
  services::Attend attend() const {
    if (!options_.progress) return {};
    return [this] { options_.progress(share_); };
  }

  void run(Case& one, sim::Failure& failure, bool first_pass) {
    const std::unique_ptr<services::CrashScenario> scenario = one.make();
    CrashRun run(*scenario, profile_, options_.setup.model, one.failing);
    run.run(failure, one.images);
    if (!run.failed_at()) {
      if (!first_pass) return;
      check_without_failure(system_.info.name, *scenario, attend());
      for (const auto& [name, count] : scenario->events()) result_.events[name] += count;
      return;
    }
    if (run.image_was_known()) return;
    one.images.insert(run.image());
    note_recovery(*scenario);
    services::ToJudge judged;
    for (const services::Condition condition : services::kConditions) {
      judged.conditions[condition] = result_.guarantees[condition].held;
    }
    judged.attend = attend();
    if (!judged.any()) return;
    const services::ServerFailure failures[] = {{*run.failed_at()}};
    const bool servers_fail = of_servers(options_.failure);
    const services::Verdict verdict = scenario->judge({failures, servers_fail ? 1U : 0U}, judged);
    const std::string where = fmt::format("{}, {}", failure.text(), one.text());
    const LosingRun repeated{one.schedule, one.failing, images_, image_seed_, failure.number()};
    for (const services::Condition condition : services::kConditions) {
      verdict.require_decided(condition);
      note(result_.guarantees[condition], repeated, where, verdict.why(condition));
    }
  }

  void note_recovery(const services::CrashScenario& scenario) {
    const auto happened = scenario.events();
    for (const services::Event& event : scenario.expected_events()) {
      if (event.in_recovery)
        result_.events[std::string(event.name)] += happened.at(std::string(event.name));
    }
  }

  const services::ServedSystem& system_;
  const sim::Profile& profile_;
  const CrashOptions& options_;
  std::vector<Case> cases_;
  CrashResult result_;
  sim::Images images_{};  // images of the current pass
  std::uint64_t image_seed_ = 0;
  std::size_t passes_done_ = 0;
  double share_ = 0;        // share of the exploration that is done
  sim::Explored explored_;  // the result of the last pass of this case
};

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
  return Exploration(system, profile, options).explore();
}

Diagram explain_loss(const services::ServedSystem& system, const sim::Profile& profile,
                     const CrashOptions& options, const Guarantee& lost) {
  const LosingRun& losing = lost.losing_run.value();
  const auto make = system.service->crash_history(system.info.name, options.setup, losing.schedule);
  std::optional<Diagram> explained;
  const auto repeat = [&](sim::Failure& failure) {
    const std::unique_ptr<services::CrashScenario> scenario = make();
    CrashRun run(*scenario, profile, options.setup.model, losing.failing);
    Recording recording;
    run.observe(recording);
    run.run(failure, {});
    if (!run.failed_at()) return;
    const services::ServerFailure failed_at[] = {{*run.failed_at()}};
    const bool servers_fail = of_servers(losing.failing.kind);
    ExplainedRun story;
    story.title = fmt::format("{}: {}", system.info.name, failure.text());
    story.conclusion = conclusion_of(lost.first_loss);
    story.servers = scenario->servers();
    story.clients = scenario->clients();
    story.calls = scenario->calls();
    story.object =
        object_of(scenario->judge({failed_at, servers_fail ? 1U : 0U}, services::ToJudge::all()),
                  lost.first_loss);
    story.events = {{*run.failed_at(), what_happens(losing.failing)}};
    if (servers_fail) story.failures = {*run.failed_at()};
    explained = explain(recording, story);
  };
  sim::explore_failures({.images = losing.images,
                         .seed = losing.seed,
                         .first = losing.crash_point,
                         .last = losing.crash_point},
                        repeat);
  return explained.value();
}

}  // namespace perdura::explore
