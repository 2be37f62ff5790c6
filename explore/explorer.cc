#include "explore/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "explore/recovery.h"
#include "explore/scenario_run.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/host/os_thread.h"
#include "platform/pmem/model/lazy_images.h"
#include "platform/pmem/model/tape.h"
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
  struct Observation {
    std::string what;
    std::uint64_t recovery = 0;  // the first that has found it
    pmem::LazyImages::Decisions decisions;
    std::vector<std::uint64_t> image;
  };
  std::string state;  // contents of persistent memory
  LeftMemory left;
  std::string outside_memory{};
  std::unique_ptr<pmem::LazyImages> images{};  // null until they are tried
  std::vector<Observation> found{};
};

// FNV-1a.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  return hash;
}

// The choices of an image that was found.
class KnownImage {
 public:
  explicit KnownImage(const FailingImage& image) : tape_({{std::string(kStream), image.image}}) {}
  pmem::Choices& choices() { return tape_.stream(kStream); }

 private:
  static constexpr std::string_view kStream = "image";
  pmem::Tape tape_;
};

// The image that keeps least, the one that keeps most, or a random one; or else the known one.
// Notes what it is.
class ImageOfRun final : public pmem::Choices {
 public:
  ImageOfRun(std::uint64_t number, std::uint64_t seed, const std::optional<FailingImage>& known)
      : number_(number), random_(seed) {
    if (known) known_.emplace(*known);
  }
  std::size_t choose(std::size_t n) override {
    taken.push_back(known_ ? known_->choices().choose(n) : chosen_by_number(n));
    images = pmem::saturated_product(images, n);
    return taken.back();
  }
  std::string text() const {
    return number_ == 0 ? "least image" : number_ == 1 ? "most image" : "random image";
  }

  std::vector<std::uint64_t> taken{};
  std::uint64_t images = 1;  // from which it was chosen

 private:
  std::size_t chosen_by_number(std::size_t n) {
    constexpr std::uint64_t kLeast = 0;
    constexpr std::uint64_t kMost = 1;
    return number_ == kLeast ? 0 : number_ == kMost ? n - 1 : random_.choose(n);
  }

  std::uint64_t number_;
  pmem::RandomChoices random_;
  std::optional<KnownImage> known_;
};

struct OfCrashPoint {
  ImageCoverage coverage;
  std::uint64_t states = 0;
  Verdict losses;
  services::PerCondition<FailingImage> failing;
};

class HistoryExplorer {
 public:
  HistoryExplorer(const History& history, const sim::Profile& profile,
                  const pmem::PersistenceModel& model, const ExploreOptions& options)
      : history_(history), profile_(profile), model_(model), options_(options) {
    for (const Condition condition : kConditions) first_loss_[condition] = ~std::uint64_t{0};
  }

  Findings explore() {
    list_crash_points();
    choose_crash_points();
    results_.resize(numbers_.size());
    const std::uint64_t portions = (numbers_.size() + kPortion - 1) / kPortion;
    share_out(options_.threads, portions, [this](std::size_t portion) {
      const std::uint64_t first = portion * kPortion;
      try_portion(first, std::min<std::uint64_t>(first + kPortion, numbers_.size()));
    });
    findings_.crash_points = crash_points_.size();
    for (OfCrashPoint& result : results_) {
      findings_.coverage.add(result.coverage);
      findings_.states += result.states;
      for (const Condition condition : kConditions) {
        if (findings_.losses.holds(condition)) {
          findings_.failing[condition] = std::move(result.failing[condition]);
        }
      }
      findings_.losses.add(result.losses);
    }
    return std::move(findings_);
  }

 private:
  bool recovers_alone() const { return history_.failing.is_power_of_all(); }

  // Runs the history without a failure.
  void list_crash_points() {
    const std::unique_ptr<services::CrashScenario> scenario = history_.make();
    pmem::LeastChoices unused;
    ScenarioRun run(*scenario, profile_, model_, without_failure(),
                    [&](const PlannedFailure&) -> pmem::Choices& { return unused; });
    crash_points_ =
        run.list_crash_points(recovers_alone() ? CrashPointList::Which::where_memory_changes
                                               : CrashPointList::Which::at_every_event);
    begin_ = run.planned_at();
    if (!crash_points_.empty()) inspection_ = begin_ + crash_points_.back() + kUntilInspection;
    services::ToJudge judged = services::ToJudge::all();
    judged.attend = [this] { report_progress(); };
    const Verdict verdict = scenario->judge({}, judged);
    verdict.require_decided(Condition::durable);
    if (!verdict.holds_all()) {
      throw PlatformError(fmt::format("{} fails already without a failure: {}\n{}", history_.system,
                                      history_.name, verdict.why(Condition::durable)));
    }
    findings_.events = scenario->events();
    for (const services::Event& event : scenario->expected_events()) {
      if (event.in_recovery) findings_.events[std::string(event.name)] = 0;
    }
  }

  void choose_crash_points() {
    if (options_.only && !crash_points_.empty()) {
      // Until the next crash point, or after the last one, a failure makes no other difference.
      const auto next =
          std::lower_bound(crash_points_.begin(), crash_points_.end() - 1, options_.only->after);
      numbers_.push_back(static_cast<std::uint64_t>(next - crash_points_.begin()));
    }
    if (options_.only) return;
    const std::uint64_t end =
        options_.last < crash_points_.size() ? options_.last + 1 : crash_points_.size();
    for (std::uint64_t crash_point = options_.first; crash_point < end;
         crash_point += options_.stride) {
      numbers_.push_back(crash_point);
    }
  }

  void try_portion(std::uint64_t first, std::uint64_t end) {
    std::optional<Failed> failed;  // what the crash point before has left
    for (std::uint64_t index = first; index < end; ++index) {
      report_progress();
      const std::string where = text_of(numbers_[index]);
      try {
        if (recovers_alone()) {
          recover_alone(index, where, failed);
        } else {
          run_to_end(index, where);
        }
      } catch (const std::exception& error) {
        rethrow_refused_memory(error);
        if (dynamic_cast<const services::Undecided*>(&error) != nullptr) throw;
        throw PlatformError(fmt::format("{}: {}", where, error.what()));
      }
      ++done_;
    }
  }

  std::string text_of(std::uint64_t crash_point) const {
    const Time at = begin_ + crash_points_[crash_point];
    return fmt::format("crash point {} of {}, at {:.6f} us", crash_point, crash_points_.size(),
                       to_microseconds(at.time_since_epoch()));
  }

  void report_progress() const {
    if (!options_.progress) return;
    const auto all = static_cast<double>(std::max<std::size_t>(numbers_.size(), 1));
    options_.progress(static_cast<double>(done_) / all);
  }

  Plan plan_of(std::uint64_t index) const {
    return failing(history_.failing, crash_points_[numbers_[index]]);
  }

  // The verdicts of one crash point. A guarantee that is lost at an earlier one is not judged.
  struct Judge {
    Judge(HistoryExplorer& of, std::uint64_t index, std::string text)
        : explorer(of),
          crash_point(of.numbers_[index]),
          result(of.results_[index]),
          where(std::move(text)) {
      for (const Condition condition : kConditions) {
        judged.conditions[condition] = of.options_.judged[condition] && may_be_first(condition);
      }
      judged.attend = [this] { explorer.report_progress(); };
    }
    bool may_be_first(Condition condition) const {
      return explorer.first_loss_[condition] >= crash_point;
    }
    void note(const Verdict& verdict, const std::string& image,
              const std::vector<std::uint64_t>& choices) {
      for (const Condition condition : kConditions) {
        if (verdict.holds(condition) || !result.losses.holds(condition) ||
            !may_be_first(condition)) {
          continue;
        }
        verdict.require_decided(condition);
        result.losses.set(condition, {fmt::format("{}, {}, {}\n{}", where, image,
                                                  explorer.history_.name, verdict.why(condition)),
                                      verdict.loss(condition).object});
        result.failing[condition] = {explorer.crash_points_[crash_point], choices, image};
        std::atomic<std::uint64_t>& first = explorer.first_loss_[condition];
        std::uint64_t known = first;
        while (crash_point < known && !first.compare_exchange_weak(known, crash_point)) {
        }
      }
    }

    HistoryExplorer& explorer;
    std::uint64_t crash_point;
    OfCrashPoint& result;
    std::string where;
    services::ToJudge judged;
  };

  // Runs the history to its end for each image.
  void run_to_end(std::uint64_t index, const std::string& where) {
    Judge judge(*this, index, where);
    OfCrashPoint& result = results_[index];
    const bool is_one = options_.only || history_.failing.kind != FailureKind::power;
    const std::uint64_t most = is_one ? 1 : options_.most_recoveries;
    std::set<std::vector<std::uint64_t>> known;
    for (std::uint64_t number = 0; number < most; ++number) {
      ImageOfRun image(number, (options_.seed << 32 ^ numbers_[index]) + number, options_.only);
      const std::unique_ptr<services::CrashScenario> scenario = history_.make();
      ScenarioRun run(*scenario, profile_, model_, plan_of(index),
                      [&](const PlannedFailure&) -> pmem::Choices& { return image; });
      const Verdict verdict = run.run(judge.judged);
      if (!run.failed_at()) {
        // Before a client has connected, there is nothing that could break.
        if (history_.failing.kind == FailureKind::connection) return;
        throw PlatformError("the run ended before it");
      }
      judge.note(verdict, options_.only ? options_.only->name : image.text(), image.taken);
      ++result.coverage.recoveries;
      known.insert(image.taken);
      result.coverage.images = std::max(result.coverage.images, image.images);
      note_recoveries(*scenario, {});
      if (image.images == 1) break;
    }
    result.coverage.covered = known.size();
    result.states = known.size();
    (known.size() >= result.coverage.images ? result.coverage.exhausted : result.coverage.sampled) =
        1;
  }

  // Runs the history up to the failure, and recovers from many images.
  void recover_alone(std::uint64_t index, const std::string& where, std::optional<Failed>& failed) {
    const std::unique_ptr<services::CrashScenario> scenario = history_.make();
    std::vector<services::ServerFailure> failures;
    {
      pmem::LeastChoices unused;
      ScenarioRun run(*scenario, profile_, model_, plan_of(index),
                      [&](const PlannedFailure&) -> pmem::Choices& { return unused; });
      run.run_until_down(
          [&](sim::SimPlatform& platform) { take_memory(platform, scenario->servers(), failed); });
      failures.assign(run.losing_failures().begin(), run.losing_failures().end());
    }
    if (failures.empty()) throw PlatformError("the run ended before it");
    scenario->take_snapshot();
    const Events before = events_of_recovery(*scenario);
    Judge judge(*this, index, where);
    OfCrashPoint& result = results_[index];
    std::string outside_memory = scenario->state_outside_memory();
    const bool known = failed->images != nullptr && failed->outside_memory == outside_memory;
    if (!known) {
      // The seed is that of what has failed, so that each crash point can be replayed alone.
      const std::uint64_t seed = options_.seed << 32 ^ digest(failed->state + outside_memory);
      failed->outside_memory = std::move(outside_memory);
      failed->images = std::make_unique<pmem::LazyImages>(failed->left.spaces, seed);
      failed->found.clear();
    }
    pmem::LazyImages& images = *failed->images;
    Recoveries recoveries(images, failed->left.memories, *scenario, profile_, inspection_);
    const auto judge_one = [&](const Failed::Observation& found) {
      if (!judge.judged.any()) return;
      judge.note(scenario->judge(failures, judge.judged),
                 fmt::format("recovery {}", found.recovery), found.image);
    };
    if (options_.only) {
      KnownImage image(*options_.only);
      recoveries.take(image.choices());
      judge.note(scenario->judge(failures, judge.judged), options_.only->name,
                 options_.only->image);
    } else if (known) {
      for (const Failed::Observation& found : failed->found) {
        recoveries.repeat(found.decisions);
        if (recoveries.found() != found.what) {
          throw PlatformError("a recovery from the same memory finds something else");
        }
        judge_one(found);
      }
    } else {
      while (!is_enough(images) && recoveries.next()) {
        if (images.runs() % 256 == 0) report_progress();
        if (!recoveries.found_new()) continue;
        failed->found.push_back(
            {recoveries.found(), images.runs(), images.decisions(), taken_by(images)});
        judge_one(failed->found.back());
      }
    }
    note_recoveries(*scenario, before);
    result.coverage = {.images = images.images(),
                       .covered = images.covered_by_all(),
                       .recoveries = recoveries.count()};
    (images.exhausted() ? result.coverage.exhausted : result.coverage.sampled) = 1;
    result.states = failed->found.size();
  }

  bool is_enough(const pmem::LazyImages& images) const {
    return options_.most_recoveries > 0 && images.runs() >= options_.most_recoveries;
  }

  static std::vector<std::uint64_t> taken_by(const pmem::LazyImages& images) {
    std::vector<std::uint64_t> taken;
    for (const pmem::ImageSpace::Choice& choice : choices_of(images)) {
      taken.push_back(choice.taken);
    }
    return taken;
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

  using Events = std::map<std::string, std::uint64_t, std::less<>>;

  static Events events_of_recovery(const services::CrashScenario& scenario) {
    const auto expected = scenario.expected_events();
    if (std::ranges::none_of(expected, [](const auto& event) { return event.in_recovery; })) {
      return {};
    }
    Events events = scenario.events();
    std::erase_if(events, [&](const auto& event) {
      return std::ranges::none_of(expected, [&](const services::Event& one) {
        return one.in_recovery && one.name == event.first;
      });
    });
    return events;
  }
  void note_recoveries(const services::CrashScenario& scenario, const Events& before) {
    const Events happened = events_of_recovery(scenario);
    if (happened.empty()) return;
    const std::lock_guard lock(mutex_);
    for (const auto& [name, count] : happened) {
      const auto known = before.find(name);
      findings_.events[name] += count - (known == before.end() ? 0 : known->second);
    }
  }

  const History& history_;
  const sim::Profile& profile_;
  const pmem::PersistenceModel& model_;
  const ExploreOptions& options_;
  std::vector<Picoseconds> crash_points_;
  Time begin_{};  // from which crash points are counted
  Time inspection_{};
  std::vector<std::uint64_t> numbers_;  // numbers of the crash points to try
  std::vector<OfCrashPoint> results_;
  services::PerCondition<std::atomic<std::uint64_t>> first_loss_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;  // guards findings_.events while threads run
  Findings findings_;
};

}  // namespace

void ImageCoverage::add(const ImageCoverage& other) {
  exhausted += other.exhausted;
  sampled += other.sampled;
  images = pmem::saturated_sum(images, other.images);
  covered = pmem::saturated_sum(covered, other.covered);
  recoveries += other.recoveries;
}

Findings explore_history(const History& history, const sim::Profile& profile,
                         const pmem::PersistenceModel& model, const ExploreOptions& options) {
  return HistoryExplorer(history, profile, model, options).explore();
}

}  // namespace perdura::explore
