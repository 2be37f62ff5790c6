#include "explore/image_exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "explore/crash_run.h"
#include "explore/recovery.h"
#include "platform/base/error.h"
#include "platform/host/os_thread.h"
#include "platform/pmem/model/lazy_images.h"
#include "platform/sim/machine.h"

namespace perdura::explore {

namespace {

// Crash points that a thread takes at a time. Memory is compared with that of the crash point
// before within a portion only.
constexpr std::uint64_t kPortion = 16;
// From the last crash point to the inspection: longer than clients need to notice a failure.
constexpr Picoseconds kUntilInspection = std::chrono::milliseconds(2);

using services::Condition;
using services::kConditions;
using services::Verdict;

// The images that a power failure may leave, and what recoveries from them have found.
struct Failed {
  struct Found {
    std::string what;
    std::uint64_t recovery = 0;  // the first that has found it
    pmem::LazyImages::Decisions decisions;
  };
  std::string state;  // contents of persistent memory
  LeftMemory left;
  std::string outside_memory{};
  std::unique_ptr<pmem::LazyImages> images{};  // null until they are tried
  std::vector<Found> found{};
};

// FNV-1a.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  return hash;
}

struct OfCrashPoint {
  ImageCoverage coverage;
  std::uint64_t states = 0;
  Verdict losses;
};

class ImageExploration {
 public:
  ImageExploration(const services::CrashHistory& make, const sim::Profile& profile,
                   const pmem::PersistenceModel& model, const std::string& name,
                   const ImageOptions& options)
      : make_(make), profile_(profile), model_(model), name_(name), options_(options) {
    for (const Condition condition : kConditions) first_loss_[condition] = ~std::uint64_t{0};
  }

  ImageFindings explore(const std::function<void(const services::CrashScenario&)>& undisturbed) {
    crash_points_ = sim::list_crash_points([&](sim::Failure& none) {
      const std::unique_ptr<services::CrashScenario> scenario = make_();
      CrashRun(*scenario, profile_, model_, all_servers(*scenario)).run(none, {});
      undisturbed(*scenario);
    });
    if (!crash_points_.empty()) inspection_ = crash_points_.back().time + kUntilInspection;
    const std::uint64_t end =
        options_.last < crash_points_.size() ? options_.last + 1 : crash_points_.size();
    for (std::uint64_t crash_point = options_.first; crash_point < end;
         crash_point += options_.stride) {
      numbers_.push_back(crash_point);
    }
    results_.resize(numbers_.size());
    run_threads();
    ImageFindings findings;
    findings.crash_points = crash_points_.size();
    for (OfCrashPoint& result : results_) {
      findings.coverage.add(result.coverage);
      findings.states += result.states;
      findings.losses.add(result.losses);
    }
    return findings;
  }

 private:
  static WhatFails all_servers(const services::CrashScenario& scenario) {
    WhatFails all;
    all.servers.resize(scenario.servers());
    std::iota(all.servers.begin(), all.servers.end(), NodeId{0});
    return all;
  }

  void run_threads() {
    const std::uint64_t portions = (numbers_.size() + kPortion - 1) / kPortion;
    share_out(options_.threads, portions, [this](std::size_t portion) {
      const std::uint64_t first = portion * kPortion;
      try_portion(first, std::min<std::uint64_t>(first + kPortion, numbers_.size()));
    });
  }

  void try_portion(std::uint64_t first, std::uint64_t end) {
    std::optional<Failed> failed;
    for (std::uint64_t place = first; place < end; ++place) {
      report_progress();
      pmem::LeastChoices unused;
      sim::fail_at(crash_points_, numbers_[place], unused, fmt::format("seed {}", options_.seed),
                   [&](sim::Failure& failure) { try_crash_point(place, failure, failed); });
      ++done_;
    }
  }

  void report_progress() const {
    if (!options_.progress) return;
    options_.progress(static_cast<double>(done_) / static_cast<double>(numbers_.size()));
  }

  // `failed` is what the crash point before has left.
  void try_crash_point(std::uint64_t place, sim::Failure& failure, std::optional<Failed>& failed) {
    const std::unique_ptr<services::CrashScenario> scenario = make_();
    Time failed_at{};
    {
      CrashRun history(*scenario, profile_, model_, all_servers(*scenario));
      history.run_to_failure(failure, [&](sim::SimPlatform& platform) {
        take_memory(platform, scenario->servers(), failed);
      });
      failed_at = history.failed_at().value();
    }
    scenario->take_snapshot();
    Judge judge(*this, numbers_[place], failed_at, fmt::format("{}, {}", failure.text(), name_));
    OfCrashPoint& result = results_[place];
    std::string outside_memory = scenario->state_outside_memory();
    if (failed->images != nullptr && failed->outside_memory == outside_memory) {
      repeat(*failed, *scenario, judge, result.coverage);
    } else {
      // The seed is that of what has failed, so that each crash point can be replayed alone.
      const std::uint64_t seed = options_.seed << 32 ^ digest(failed->state + outside_memory);
      failed->outside_memory = std::move(outside_memory);
      failed->images = std::make_unique<pmem::LazyImages>(failed->left.spaces, seed);
      failed->found.clear();
      explore(*failed, *scenario, judge, result.coverage);
    }
    const pmem::LazyImages& images = *failed->images;
    result.coverage.images = images.images();
    result.coverage.covered = images.covered_by_all();
    (images.exhausted() ? result.coverage.exhausted : result.coverage.sampled) = 1;
    result.states = failed->found.size();
    result.losses = std::move(judge.losses);
  }

  static void take_memory(sim::SimPlatform& platform, NodeId servers,
                          std::optional<Failed>& failed) {
    std::string state;
    for (NodeId node = 0; node < servers; ++node) {
      state += platform.machine_of_node(node).persistent_state() + '\n';
    }
    if (failed && failed->state == state) return;
    failed = Failed{std::move(state), LeftMemory(platform, images_left(platform, servers))};
  }

  // The verdicts of one crash point. A guarantee that is lost at an earlier one is not judged.
  struct Judge {
    Judge(ImageExploration& of, std::uint64_t number, Time at, std::string place)
        : exploration(of), crash_point(number), failed_at(at), where(std::move(place)) {
      for (const Condition condition : kConditions) {
        judged.conditions[condition] = may_be_first(condition);
      }
      judged.attend = [this] { exploration.report_progress(); };
    }
    bool may_be_first(Condition condition) const {
      return exploration.first_loss_[condition] >= crash_point;
    }
    void judge(const services::CrashScenario& scenario, std::uint64_t recovery) {
      if (!judged.any()) return;
      const services::ServerFailure failures[] = {{failed_at}};
      const Verdict verdict = scenario.judge(failures, judged);
      for (const Condition condition : kConditions) {
        if (verdict.holds(condition) || !losses.holds(condition) || !may_be_first(condition)) {
          continue;
        }
        verdict.require_decided(condition);
        losses.set(condition,
                   {fmt::format("{}, recovery {}\n{}", where, recovery, verdict.why(condition))});
        std::atomic<std::uint64_t>& first = exploration.first_loss_[condition];
        std::uint64_t known = first;
        while (crash_point < known && !first.compare_exchange_weak(known, crash_point)) {
        }
      }
    }

    ImageExploration& exploration;
    std::uint64_t crash_point;
    Time failed_at;
    std::string where;
    services::ToJudge judged;
    Verdict losses;
  };

  void explore(Failed& failed, services::CrashScenario& scenario, Judge& judge,
               ImageCoverage& coverage) {
    std::map<std::string, std::size_t, std::less<>> known;
    pmem::LazyImages& images = *failed.images;
    while ((options_.most_recoveries == 0 || images.runs() < options_.most_recoveries) &&
           images.next()) {
      if (images.runs() % 256 == 0) report_progress();
      recover(failed, scenario);
      ++coverage.recoveries;
      std::string found = scenario.observations();
      if (known.emplace(found, known.size()).second) {
        judge.judge(scenario, images.runs());
        failed.found.push_back({std::move(found), images.runs(), images.decisions()});
      }
      scenario.restore_snapshot();
    }
  }

  void repeat(Failed& failed, services::CrashScenario& scenario, Judge& judge,
              ImageCoverage& coverage) {
    for (const Failed::Found& found : failed.found) {
      failed.images->repeat(found.decisions);
      recover(failed, scenario);
      ++coverage.recoveries;
      if (scenario.observations() != found.what) {
        throw PlatformError("a recovery from the same memory finds something else");
      }
      judge.judge(scenario, found.recovery);
      scenario.restore_snapshot();
    }
  }

  void recover(Failed& failed, services::CrashScenario& scenario) const {
    recover_from(*failed.images, scenario, profile_, inspection_, failed.left.memories);
  }

  const services::CrashHistory& make_;
  const sim::Profile& profile_;
  const pmem::PersistenceModel& model_;
  const std::string& name_;
  const ImageOptions& options_;
  std::vector<sim::CrashPoint> crash_points_;
  Time inspection_{};
  std::vector<std::uint64_t> numbers_;  // numbers of the crash points to try
  std::vector<OfCrashPoint> results_;
  services::PerCondition<std::atomic<std::uint64_t>> first_loss_;
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace

void ImageCoverage::add(const ImageCoverage& other) {
  exhausted += other.exhausted;
  sampled += other.sampled;
  images = pmem::saturated_sum(images, other.images);
  covered = pmem::saturated_sum(covered, other.covered);
  recoveries += other.recoveries;
}

ImageFindings explore_images(
    const services::CrashHistory& make, const sim::Profile& profile,
    const pmem::PersistenceModel& model, const std::string& name, const ImageOptions& options,
    const std::function<void(const services::CrashScenario&)>& undisturbed) {
  return ImageExploration(make, profile, model, name, options).explore(undisturbed);
}

}  // namespace perdura::explore
