// Many images of a failure without running its history again: what is found is the same as when
// each image is tried in a run of its own.
#include "explore/explorer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "explore/crash.h"
#include "explore/explored.h"
#include "explore/recovery.h"
#include "explore/scenario_run.h"
#include "platform/base/error.h"
#include "platform/pmem/model/lazy_images.h"
#include "platform/sim/machine.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using pmem::LazyImages;
using pmem::PersistenceDomain;
using pmem::PersistenceModel;
using services::Condition;
using services::CrashHistory;
using services::CrashScenario;
using services::Verdict;

const sim::Profile& imaged_testbed() { return perdura::test::erda_testbed(); }

constexpr PersistenceModel kImagedModels[] = {{PersistenceDomain::dmp, false},
                                              {PersistenceDomain::dmp, true},
                                              {PersistenceDomain::mhp, true}};

// The histories of a system, with a setting, on a kind of server.
struct ImagedCase {
  services::ServedSystem system;
  ExploredSetting setting;
  PersistenceModel model;

  sim::Profile profile() const {
    return with_commits_if_needed(imaged_testbed(), system.info, setting.parameters);
  }
  std::vector<CrashHistory> histories() const {
    const services::CrashSetup setup{
        .model = model, .parameters = setting.parameters, .correct = setting.correct};
    std::vector<CrashHistory> all;
    for (const services::CrashSchedule& schedule : system.service->schedules()) {
      auto history = system.service->crash_history(system.info.name, setup, schedule);
      if (history) all.push_back(std::move(history));
    }
    return all;
  }
};

std::vector<ImagedCase> imaged_cases() {
  std::vector<ImagedCase> all;
  for (const services::ServedSystem& system : systems::all_systems()) {
    for (const ExploredSetting& setting : explored_settings(system.info)) {
      if (setting.keeps_nothing) continue;  // it is not explored
      for (const PersistenceModel& model : kImagedModels) {
        const services::CrashSetup setup{
            .model = model, .parameters = setting.parameters, .correct = setting.correct};
        if (!refusal(system.info, setup, imaged_testbed().nic).empty()) continue;
        all.push_back({system, setting, model});
      }
    }
  }
  return all;
}

std::string imaged_name(const testing::TestParamInfo<ImagedCase>& one) {
  std::string name = explored_name(one.param.system.info, one.param.setting) + "_on_" +
                     explored_name(one.param.model);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

// A failure at a crash point of a history, to recover from.
class FailedHistory {
 public:
  FailedHistory(const CrashHistory& make, const sim::Profile& profile,
                const PersistenceModel& model, Picoseconds crash_point)
      : profile_(profile), scenario_(make()) {
    pmem::LeastChoices unused;
    ScenarioRun run(*scenario_, profile_, model, failing({}, crash_point),
                    [&](const PlannedFailure&) -> pmem::Choices& { return unused; });
    run.run_until_down([&](sim::SimPlatform& platform) {
      for (NodeId node = 0; node < scenario_->servers(); ++node) {
        spaces_.push_back(platform.machine_of_node(node).images());
        memories_.push_back(platform.machine_of_node(node).crashed(spaces_.back()));
      }
    });
    scenario_->take_snapshot();
  }

  const std::vector<pmem::ImageSpace>& spaces() const { return spaces_; }
  // What the inspector finds after a recovery from the next image of `images`. If it is decided
  // beforehand, then nothing is left to be decided by what is read.
  std::string recover(LazyImages& images, bool decided_beforehand) {
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      memories_[i].begin(images, i);
      if (!decided_beforehand) continue;
      for (auto& region : memories_[i].regions) region.decide_all();
    }
    explore::recover(*scenario_, profile_, Time() + std::chrono::milliseconds(20), memories_);
    images.end();
    std::string found = scenario_->observations();
    for (auto& memory : memories_) memory.restore();
    scenario_->restore_snapshot();
    return found;
  }

 private:
  const sim::Profile& profile_;
  std::unique_ptr<CrashScenario> scenario_;
  std::vector<pmem::ImageSpace> spaces_;
  std::deque<pmem::sim::CrashedMemory> memories_;
};

std::vector<Picoseconds> crash_points_of(const CrashHistory& make, const sim::Profile& profile,
                                         const PersistenceModel& model) {
  const auto scenario = make();
  pmem::LeastChoices unused;
  ScenarioRun run(*scenario, profile, model, without_failure(),
                  [&](const PlannedFailure&) -> pmem::Choices& { return unused; });
  return run.list_crash_points(CrashPointList::Which::where_memory_changes);
}

// The longer a history is, the longer each of its images takes: so fewer crash points of it are tried,
// and of one with more images than this, none.
std::uint64_t fewer(std::uint64_t of_short_history, std::size_t crash_points) {
  constexpr std::size_t kShort = 500;
  return std::max<std::uint64_t>(1, of_short_history * kShort / std::max(kShort, crash_points));
}

class Images : public testing::TestWithParam<ImagedCase> {};

// Recovery and inspection that decide what they read find the same as those from each image.
TEST_P(Images, DecidedWhenTheyAreReadAreFoundLikeAllOfThem) {
  constexpr std::size_t kTried = 40;
  const sim::Profile profile = GetParam().profile();
  std::uint64_t of_many_images = 0;
  for (const CrashHistory& make : GetParam().histories()) {
    const auto crash_points = crash_points_of(make, profile, GetParam().model);
    for (std::size_t crash_point = 0; crash_point < crash_points.size();
         crash_point += crash_points.size() / fewer(kTried, crash_points.size()) + 1) {
      SCOPED_TRACE(crash_point);
      FailedHistory failed(make, profile, GetParam().model, crash_points[crash_point]);
      LazyImages each(failed.spaces(), 1);
      if (each.images() < 2) continue;
      ++of_many_images;
      if (each.images() > fewer(300, crash_points.size())) continue;
      std::set<std::string> all;
      while (each.next()) all.insert(failed.recover(each, true));
      std::set<std::string> lazily;
      LazyImages lazy(failed.spaces(), 1);
      while (lazy.next()) lazily.insert(failed.recover(lazy, false));
      ASSERT_EQ(lazily, all);
      ASSERT_EQ(each.covered_by_all(), each.images());
      ASSERT_EQ(lazy.covered_by_all(), each.images());
      ASSERT_LE(lazy.runs(), each.runs());
    }
  }
  if (GetParam().model.domain == PersistenceDomain::dmp) {
    EXPECT_GT(of_many_images, 0U);
  }
}

// The guarantees that some image of a crash point breaks are those that runs of the whole history,
// one for each image, break.
TEST_P(Images, BreakTheSameGuaranteesAsRunsOfTheWholeHistory) {
  constexpr std::size_t kTried = 12;
  constexpr std::size_t kLongest = 2000;  // crash points; longer histories would take minutes
  const sim::Profile profile = GetParam().profile();
  int compared = 0;
  for (const CrashHistory& make : GetParam().histories()) {
    const auto crash_points = crash_points_of(make, profile, GetParam().model);
    if (crash_points.size() > kLongest) continue;
    for (std::size_t crash_point = crash_points.size() / 8; crash_point < crash_points.size();
         crash_point += crash_points.size() / fewer(kTried, crash_points.size()) + 1) {
      SCOPED_TRACE(crash_point);
      {
        FailedHistory failed(make, profile, GetParam().model, crash_points[crash_point]);
        if (LazyImages(failed.spaces(), 1).images() > fewer(60, crash_points.size())) continue;
      }
      const Findings lazily = explore_history({"", "", make}, profile, GetParam().model,
                                              {.first = crash_point, .last = crash_point});
      EXPECT_EQ(lazily.coverage.covered, lazily.coverage.images);
      Verdict whole;
      // Lines that would be the same in all images count here, so there may be many more.
      const std::uint64_t most_runs = fewer(2000, crash_points.size());
      pmem::Enumerator image;
      while (image.next() && image.sequences() <= most_runs) {
        const auto scenario = make();
        ScenarioRun run(*scenario, profile, GetParam().model,
                        failing({}, crash_points[crash_point]),
                        [&](const PlannedFailure&) -> pmem::Choices& { return image; });
        whole.add(run.run());
      }
      if (image.sequences() > most_runs) continue;
      ++compared;
      const Verdict& losses = lazily.losses;
      for (const Condition condition : services::kConditions) {
        EXPECT_EQ(losses.holds(condition), whole.holds(condition))
            << losses.why(condition) << whole.why(condition);
      }
    }
  }
  RecordProperty("compared", compared);
}

INSTANTIATE_TEST_SUITE_P(All, Images, testing::ValuesIn(imaged_cases()), imaged_name);

// --- results -------------------------------------------------------------------------------------

Findings found_of(std::string_view system, const PersistenceModel& model,
                  const ExploreOptions& options) {
  const ImagedCase one{systems::find_system(system).value(), {}, model};
  return explore_history({std::string(system), "first", one.histories().front()}, imaged_testbed(),
                         model, options);
}

std::string text_of(const Findings& found) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {}", found.crash_points, found.states,
                  found.coverage.exhausted, found.coverage.sampled, found.coverage.images,
                  found.coverage.covered, found.coverage.recoveries);
  for (const Condition condition : services::kConditions) {
    text += "\n" + found.losses.why(condition);
  }
  return text;
}

TEST(Explorer, DependsOnTheSeedAndNotOnThreads) {
  const PersistenceModel dmp{PersistenceDomain::dmp, false};
  const ExploreOptions one{.most_recoveries = 5, .stride = 7, .threads = 1};
  const ExploreOptions four{.most_recoveries = 5, .stride = 7, .threads = 4};
  const std::string first = text_of(found_of("erda", dmp, one));
  EXPECT_EQ(text_of(found_of("erda", dmp, four)), first);
  EXPECT_EQ(text_of(found_of("erda", dmp, one)), first);
  const ExploreOptions other{.most_recoveries = 5, .seed = 2, .stride = 7, .threads = 2};
  EXPECT_NE(text_of(found_of("erda", dmp, other)), first);
}

// A loss names its crash point, and is found again at this point alone.
TEST(Explorer, ALossIsRepeatedByItsCrashPoint) {
  constexpr std::string_view kNames = "crash point ";
  const PersistenceModel dmp{PersistenceDomain::dmp, true};
  const std::string loss =
      found_of("erda", dmp, {.most_recoveries = 6}).losses.why(Condition::atomic);
  ASSERT_TRUE(loss.starts_with(kNames)) << loss;
  const std::uint64_t point = std::stoull(loss.substr(kNames.size()));
  const ExploreOptions alone{.most_recoveries = 6, .first = point, .last = point};
  EXPECT_EQ(found_of("erda", dmp, alone).losses.why(Condition::atomic), loss);
}

TEST(Explorer, SaysWhatItHasSampledAndWhatExhausted) {
  const PersistenceModel dmp{PersistenceDomain::dmp, false};
  const Findings all = found_of("level", dmp, {.stride = 5});
  EXPECT_EQ(all.coverage.sampled, 0U);
  EXPECT_EQ(all.coverage.covered, all.coverage.images);
  const Findings some = found_of("erda", dmp, {.most_recoveries = 3, .stride = 20});
  EXPECT_GT(some.coverage.sampled, 0U);
  EXPECT_LE(some.coverage.recoveries, 3 * (some.coverage.sampled + some.coverage.exhausted));
}

TEST(Explorer, CountsImagesOnceForEachMomentAndRecoveriesApart) {
  ImageCoverage sum;
  sum.add({.exhausted = 1, .sampled = 0, .images = 10, .covered = 10, .recoveries = 2});
  sum.add(
      {.exhausted = 0, .sampled = 1, .images = pmem::kCountless, .covered = 5, .recoveries = 4});
  EXPECT_EQ(sum.images, pmem::kCountless);
  EXPECT_EQ(sum.covered, 15U);
  EXPECT_EQ(sum.recoveries, 6U);
}

// --- a loss that one combination of lines alone shows --------------------------------------------

constexpr Bytes kLines = 12;

// A client has the server store a word to each of twelve lines, none of which is flushed; recovery
// is wrong if the third and the seventh line have survived and the fifth has not. It looks at no
// others.
class LinesScenario final : public CrashScenario {
 public:
  std::uint32_t clients() const override { return 1; }
  std::uint64_t planned_calls(std::size_t) const override { return 0; }  // it is not generated

  Task<> serve(Thread& thread) override {
    auto region = thread.node.open_region("lines");
    if (region == nullptr) {
      region = thread.node.create_region("lines", kLines * kCacheLine, pmem::Medium::pm);
    } else {
      const auto survived = [&](Bytes line) { return region->load((line - 1) * kCacheLine) != 0; };
      wrong_ = survived(3) && survived(7) && !survived(5);
      recovered_ = true;
    }
    for (Bytes line = 0; line < kLines; ++line) {
      if (!recovered_) region->store(line * kCacheLine, line + 1);
      co_await sleep_for(Microseconds(1));
    }
    for (;;) co_await sleep_for(std::chrono::seconds(1));
  }
  Task<> use(Thread&, std::uint32_t) override { co_await sleep_for(Microseconds(kLines + 2)); }
  Task<> inspect(Thread&) override {
    while (!recovered_) co_await sleep_for(Microseconds(1));
  }
  Verdict judge(std::span<const services::ServerFailure> failures,
                const services::ToJudge&) const override {
    Verdict verdict;
    if (!failures.empty() && wrong_) {
      verdict.set(Condition::durable, {"a combination of lines is lost"});
    }
    return verdict;
  }

 protected:
  void snapshot_observations() override {}
  void restore_observations() override { wrong_ = recovered_ = false; }
  std::string observations_since_snapshot() const override { return wrong_ ? "wrong" : "right"; }

 private:
  bool wrong_ = false;
  bool recovered_ = false;
};

TEST(Explorer, FindsTheOneCombinationOfLinesThatIsLost) {
  const PersistenceModel dmp{PersistenceDomain::dmp, false};
  const auto make = [] { return std::make_unique<LinesScenario>(); };
  const Findings found = explore_history({"lines", "lines", make}, imaged_testbed(), dmp, {});
  EXPECT_NE(found.losses.why(Condition::durable).find("a combination of lines"), std::string::npos);
  EXPECT_EQ(found.coverage.sampled, 0U);
  EXPECT_GT(found.coverage.images, std::uint64_t{1} << kLines) << "each line survives or not";
  EXPECT_LT(found.coverage.recoveries, 6 * found.crash_points) << "of three lines that are read";
}

}  // namespace
}  // namespace perdura::explore::test
