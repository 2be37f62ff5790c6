#include "bench/crash/crash.h"

#include <fmt/format.h>

#include <set>

#include "bench/crash/crash_scenario.h"
#include "bench/crash/crash_verdict.h"
#include "harness/history/checker.h"
#include "platform/error.h"

namespace perdura::bench {

namespace {

void note(Guarantee& guarantee, const std::string& where, const std::string& why) {
  if (why.empty() || !guarantee.held) return;
  guarantee.held = false;
  guarantee.first_loss = where + "\n" + why;
}

void check_without_failure(const systems::KvSystem& system, const CrashScenario& scenario) {
  std::string problem = scenario.problem();
  if (problem.empty()) {
    const history::Verdict verdict = history::check(scenario.history());
    if (verdict.accepted()) return;
    problem = describe(verdict);
  }
  throw PlatformError(
      fmt::format("{} fails already without a power failure: {}", system.name, problem));
}

}  // namespace

std::string_view CrashResult::strongest() const {
  return durable.held ? "durable" : ordered.held ? "ordered" : atomic.held ? "atomic" : "none";
}

CrashResult explore_crashes(const systems::KvSystem& system, const sim::Profile& profile,
                            const CrashOptions& options) {
  CrashResult result;
  std::set<std::uint64_t> images;
  const auto run = [&](sim::Failure& failure) {
    CrashScenario scenario(system, profile, options);
    scenario.run(failure);
    if (!scenario.failed_at()) {
      check_without_failure(system, scenario);
      result.cleanings = scenario.cleanings();
      return;
    }
    images.insert(scenario.image());
    const CrashVerdict verdict =
        judge_crash(scenario.history(), *scenario.failed_at(), kCrashReader, scenario.problem());
    note(result.durable, failure.text(), verdict.durable);
    note(result.ordered, failure.text(), verdict.ordered);
    note(result.atomic, failure.text(), verdict.atomic);
  };
  const auto explore = [&](sim::Images which, std::uint64_t seed) {
    const sim::Explored explored = sim::explore_failures({.images = which,
                                                          .seed = seed,
                                                          .first = options.first,
                                                          .last = options.last,
                                                          .stride = options.stride},
                                                         run);
    result.moments = explored.moments;
    result.runs += explored.runs;
  };
  explore(sim::Images::least, 0);
  explore(sim::Images::most, 0);
  for (std::uint32_t i = 0; i < options.random_images; ++i) {
    explore(sim::Images::random, options.seed * options.random_images + i);
  }
  result.images = images.size();
  return result;
}

}  // namespace perdura::bench
