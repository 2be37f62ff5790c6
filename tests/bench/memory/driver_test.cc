// The driver of replicated memory: every experiment of ours can be planned, points measure what
// they say, copies end equal, and what cannot be is refused before anything runs.
#include "bench/memory/memory_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "bench/memory/sync_points.h"
#include "tests/bench/memory/points.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;

TEST(MemoryDriver, PlansTheExperiments) {
  int experiments = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PERDURA_SOURCE_DIR "/experiments")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("mojim-") || name == "mojim-filebench.toml") continue;  // of driver fs
    const auto experiment =
        harness::load_experiment(entry.path().string(), tested().declarations());
    EXPECT_GE(plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), driver(), 1).size(),
              4U);
    ++experiments;
  }
  EXPECT_GE(experiments, 4);
}

class MemoryDriverOn : public testing::TestWithParam<std::string> {};

TEST_P(MemoryDriverOn, MeasuresEachSyncOfEachSystemAndLeavesEqualCopies) {
  for (const services::MemorySystem& system : systems::memory_systems()) {
    SCOPED_TRACE(system.info.name);
    for (const std::uint64_t threads : {1, 2}) {
      const Point point = plan({system_is(system.info.name), "workload.ranges=3",
                                fmt::format("workload.threads={}", threads)})
                              .front();
      const Measurement result = tested().measure(point, GetParam());
      EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
      EXPECT_EQ(result.usage_error, "");
      EXPECT_EQ(result.operations(), 300U);
      EXPECT_EQ(result.kinds.at(kSync).latency.count(), 300U);
      EXPECT_EQ(result.kinds.at(kSync).errors, 0U);
      EXPECT_GT(result.elapsed, Picoseconds{});
      if (threads == 1) {  // else they may not have been at work together, they are so few
        EXPECT_TRUE(result.throughput());
      }
      // The ranges of a sync may overlap; each copy stores what it gets in its data area.
      const auto copies = point.roles.node_count() - 1;
      if (copies > 0) {
        EXPECT_GT(result.writes().total().bytes_issued, 300U * 3 * 200 * copies);
      }
      EXPECT_TRUE(result.evidence.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, MemoryDriverOn,
                         testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

double mean_latency(const std::vector<std::string>& changes) {
  return tested().measure(plan(changes).front(), "sim").kinds.at(kSync).latency.mean();
}

// Table 3.1: who waits for whom.
TEST(MemoryDriver, TellsTheModesApart) {
  const double async = mean_latency({system_is("m-async")});
  const double sync = mean_latency({system_is("m-sync")});
  const double flush = mean_latency({system_is("m-syncflush")});
  const double chain = mean_latency({system_is("e-chain")});
  const double broadcast = mean_latency({system_is("e-broadcast")});
  EXPECT_LT(async, flush) << "nobody waits for the mirror";
  EXPECT_LT(sync, flush) << "nothing is flushed";
  EXPECT_LT(sync, chain);
  EXPECT_LT(sync, broadcast);
  // The application does not wait for the backups.
  EXPECT_EQ(mean_latency({system_is("m-syncsec")}), sync);
  EXPECT_EQ(mean_latency({system_is("m-syncsec"), "workload.backups=3"}), sync);
}

// What makes a sync durable costs what the guarantee is worth.
TEST(MemoryDriver, SaysWhatIsGuaranteed) {
  const std::vector<std::string> server{"workload.domain=\"dmp\"", "workload.ddio=\"on\"",
                                        "workload.receive_buffers=\"pm\"",
                                        "workload.transport=\"ib\""};
  const auto with = [&](const char* persistence) {
    auto changes = server;
    changes.push_back(fmt::format("workload.persistence=\"{}\"", persistence));
    return tested().measure(plan(changes).front(), "sim");
  };
  const Measurement paper = with("paper");
  const Measurement correct = with("correct");
  EXPECT_EQ(paper.guarantee, "none");
  EXPECT_EQ(paper.method, "");
  EXPECT_EQ(correct.guarantee, "durable");
  EXPECT_NE(correct.method, "");
  EXPECT_GT(correct.kinds.at(kSync).latency.mean(), paper.kinds.at(kSync).latency.mean());
}

TEST(MemoryDriver, NoticesCopiesThatDiffer) {
  const Point point = plan().front();
  Measurement equal;
  equal.evidence = {7, 7, 7};
  driver().conclude(point, equal);
  EXPECT_EQ(equal.verdict, Verdict::valid);
  Measurement differing;
  differing.evidence = {7, 7, 8};
  driver().conclude(point, differing);
  EXPECT_EQ(differing.verdict, Verdict::invalid);
  EXPECT_EQ(differing.reason, "the copies of the region differ when all has been synced");
}

// More requests than the log has slots.
TEST(MemoryDriver, ASyncThatDoesNotFitIntoALogFailsThePoint) {
  const Point point = plan({"systems.m-sync.log_slots=2", "systems.m-sync.slot_bytes=64"}).front();
  const Measurement result = tested().measure(point, "sim");
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_NE(result.reason.find("a sync ended with"), std::string::npos) << result.reason;
}

TEST(MemoryDriver, RefusesWhatCannotBe) {
  EXPECT_EQ(tested().refusal({}), "no error");
  EXPECT_NE(tested()
                .refusal({"workload.threads=512"})
                .find("each thread has a part of the region, 128 bytes"),
            std::string::npos);
  EXPECT_NE(tested()
                .refusal({system_is("s-unreplicated"), "workload.persistence=\"correct\""})
                .find("s-unreplicated"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"workload.domain=\"dmp\""}).find("has no effect as long as"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"timeline.interval_us=100"}).find("not recorded over time"),
            std::string::npos);
  EXPECT_NE(tested().refusal({system_is("m-sink")}).find("unknown system 'm-sink'"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"workload.records=5"}).find("unknown key 'records' in [workload]"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"systems.m-sync.log_slots=1"}).find("log_slots in [systems.m-sync]"),
            std::string::npos);
}

}  // namespace
}  // namespace perdura::bench
