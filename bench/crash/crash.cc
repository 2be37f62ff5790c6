#include "bench/crash/crash.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "bench/crash/crash_scenario.h"
#include "bench/crash/crash_verdict.h"
#include "harness/history/checker.h"
#include "platform/base/error.h"

namespace perdura::bench {

namespace {

void note(Guarantee& guarantee, const std::string& where, const std::string& why) {
  if (why.empty() || !guarantee.held) return;
  guarantee.held = false;
  guarantee.first_loss = where + "\n" + why;
}

// Gets that returned a version before its put had been acknowledged.
std::uint64_t early_reads(const history::History& history) {
  const auto& all = history.operations();
  return static_cast<std::uint64_t>(
      std::count_if(all.begin(), all.end(), [&](const history::Operation& get) {
        return get.kind == history::Kind::get && get.outcome == history::Outcome::ok &&
               std::any_of(all.begin(), all.end(), [&](const history::Operation& put) {
                 return put.kind == history::Kind::put && put.key == get.key &&
                        put.version == get.version && put.end > get.end;
               });
      }));
}

void check_without_failure(const systems::KvSystem& system, const CrashScenario& scenario) {
  std::string problem = scenario.problem();
  if (problem.empty()) {
    const history::CheckResult verdict = history::check(scenario.history());
    if (verdict.accepted()) return;
    problem = describe(verdict);
  }
  throw PlatformError(
      fmt::format("{} fails already without a power failure: {}", system.name, problem));
}

class Exploration {
 public:
  Exploration(const systems::KvSystem& system, const sim::Profile& profile,
              const CrashOptions& options)
      : system_(system),
        store_(small_store(system, options)),
        profile_(profile),
        options_(options) {}

  CrashResult explore() {
    std::vector<Schedule> schedules(kSchedules.begin(), kSchedules.end());
    if (options_.schedule) schedules = {*options_.schedule};
    const auto passes = schedules.size() * (2 + options_.random_images);
    for (const Schedule schedule : schedules) {
      explored_ = {};
      const auto explore = [&](sim::Images which, std::uint64_t seed) {
        return pass(schedule, which, seed, passes);
      };
      const std::uint64_t moments = explore(sim::Images::least, 0);
      explore(sim::Images::most, 0);
      for (std::uint32_t i = 0; i < options_.random_images; ++i) {
        explore(sim::Images::random, options_.seed * options_.random_images + i);
      }
      result_.moments += moments;
    }
    std::set<std::uint64_t> all;
    for (const auto& [schedule, images] : images_) all.insert(images.begin(), images.end());
    result_.images = all.size();
    return result_;
  }

 private:
  // All moments once. Returns how many there are.
  std::uint64_t pass(Schedule schedule, sim::Images which, std::uint64_t seed, std::size_t passes) {
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
               options_.progress((static_cast<double>(passes_done_) + of_pass) /
                                 static_cast<double>(passes));
             }},
        [&](sim::Failure& failure) { run(schedule, failure, which == sim::Images::least); });
    ++passes_done_;
    result_.runs += explored_.runs + explored_.known;
    return explored_.moments;
  }

  void run(Schedule schedule, sim::Failure& failure, bool first_of_schedule) {
    CrashScenario scenario(system_, store_, profile_, options_, schedule);
    std::set<std::uint64_t>& images = images_[schedule];
    scenario.run(failure, images);
    if (!scenario.failed_at()) {
      if (!first_of_schedule) return;
      check_without_failure(system_, scenario);
      result_.cleanings += scenario.cleanings();
      result_.early_reads += early_reads(scenario.history());
      return;
    }
    if (scenario.image_was_known()) return;
    images.insert(scenario.image());
    const CrashVerdict verdict =
        judge_crash(scenario.history(), *scenario.failed_at(), kCrashReader, scenario.problem());
    const std::string where = fmt::format("{}, {}", failure.text(), to_string(schedule));
    note(result_.durable, where, verdict.durable);
    note(result_.acknowledged, where, verdict.acknowledged);
    note(result_.observed, where, verdict.observed);
    note(result_.ordered, where, verdict.ordered);
    note(result_.atomic, where, verdict.atomic);
  }

  const systems::KvSystem& system_;
  const systems::KvConfig store_;
  const sim::Profile& profile_;
  const CrashOptions& options_;
  CrashResult result_;
  std::size_t passes_done_ = 0;
  sim::Explored explored_;  // the last pass of this schedule
  // That were tried. The worst image, the best and a random one are often the same.
  std::map<Schedule, std::set<std::uint64_t>> images_;
};

}  // namespace

systems::GuaranteeLevel CrashResult::strongest() const {
  using systems::GuaranteeLevel;
  if (durable.held) return GuaranteeLevel::durable;
  if (ordered.held)
    return acknowledged.held ? GuaranteeLevel::durable_writes : GuaranteeLevel::ordered;
  return atomic.held ? GuaranteeLevel::atomic : GuaranteeLevel::none;
}

CrashResult explore_crashes(const systems::KvSystem& system, const sim::Profile& profile,
                            const CrashOptions& options) {
  return Exploration(system, profile, options).explore();
}

}  // namespace perdura::bench
