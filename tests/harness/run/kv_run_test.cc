// The key-value driver on a system that is known through and through.
#include <gtest/gtest.h>

#include "bench/client_server.h"
#include "bench/driver/server.h"
#include "bench/kv/kv_driver.h"
#include "bench/kv/kv_parameters.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "fake_kv.h"
#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "services/kv/service.h"
#include "systems/registry/registry.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;
using ycsb::OperationKind;

const sim::Profile& profile() {
  static const sim::Profile loaded =
      sim::load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml");
  return loaded;
}

class KvRunTest : public testing::Test {
 protected:
  KvRunTest() {
    test::fake_counts() = {};
    point_.roles = client_server(1);
    point_.settings.system.text = "fake";
    ycsb::WorkloadSpec& spec = own_workload(point_).spec;
    spec.record_count = 100;
    spec.operation_count = 1000;
    spec.key_size = 16;
    spec.field_count = 1;
    spec.field_length = 64;
    share({{OperationKind::read, 0.5}, {OperationKind::update, 0.5}});
  }
  void share(std::initializer_list<std::pair<OperationKind, double>> shares) {
    own_workload(point_).spec.proportions = {};
    for (const auto& [kind, part] : shares) {
      own_workload(point_).spec.proportions[static_cast<std::size_t>(kind)] = part;
    }
  }
  Measurement run() {
    const kv::KvSystem table[] = {test::kFakeKv};
    const KvDriver driver(table);
    driver.check(point_);
    sim::SimPlatform platform(profile(), point_.roles.node_count());
    Measurement result = driver.run(platform, point_);
    driver.conclude(point_, result);
    return result;
  }

  Point point_{kv_parameters()};
};

TEST_F(KvRunTest, PerformsAsManyOperationsAsAskedOfTheKindsAsked) {
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.operations(), 1000U);
  EXPECT_EQ(result.kinds.size(), 2U);
  EXPECT_NEAR(static_cast<double>(result.kinds.at(bench::kind_of(OperationKind::read)).operations),
              500, 100);
  EXPECT_EQ(result.kinds.at(bench::kind_of(OperationKind::read)).latency.count(),
            result.kinds.at(bench::kind_of(OperationKind::read)).operations);
}

// What was found by exploration, the weakest of what the server may be; not what a paper promises.
TEST_F(KvRunTest, SaysWhatACompletedOperationMeans) {
  using services::GuaranteeLevel;
  const services::SystemInfo erda = services::info_of(systems::find_kv_system("erda"));
  const auto info_of = [](std::string_view name) {
    return services::info_of(systems::find_kv_system(name));
  };
  point_.parameters.clear();
  for (const bool said : {false, true}) {
    if (said) point_.settings.set("persistence", "paper");
    EXPECT_EQ(guarantee_of(point_, erda), GuaranteeLevel::none);
    EXPECT_EQ(guarantee_of(point_, info_of("continuity")), GuaranteeLevel::durable);
  }
  point_.testbed = {"on", "ib"};
  point_.settings.set("domain", "wsp");
  EXPECT_EQ(guarantee_of(point_, erda), GuaranteeLevel::durable);
  point_.settings.set("transport", "iwarp");
  EXPECT_FALSE(guarantee_of(point_, erda)) << "it cannot run on iWARP";
  EXPECT_THROW(bench::check_server(point_, erda), UsageError);
  const services::SystemInfo raw = info_of("read-after-write");
  point_.settings.unset("domain");
  point_.settings.unset("transport");
  EXPECT_LT(guarantee_of(point_, raw), GuaranteeLevel::durable) << "it may be DMP with DDIO";
  point_.testbed.ddio = "off";
  EXPECT_EQ(guarantee_of(point_, raw), GuaranteeLevel::durable);
  point_.settings.set("domain", "dmp");
  EXPECT_EQ(guarantee_of(point_, erda), GuaranteeLevel::none);
  point_.parameters["persist_before_update"] = 1;
  EXPECT_EQ(guarantee_of(point_, erda), GuaranteeLevel::ordered);
  point_.settings.set("persistence", "correct");
  EXPECT_EQ(guarantee_of(point_, erda), GuaranteeLevel::durable_writes)
      << "a get may return what is then lost";
  EXPECT_FALSE(guarantee_of(point_, services::info_of(test::kFakeKv)))
      << "nobody has explored the fake";
}

TEST_F(KvRunTest, LatencyIsWhatAnOperationTakes) {
  const Measurement result = run();
  const auto& reads = result.kinds.at(bench::kind_of(OperationKind::read)).latency;
  EXPECT_GE(reads.min(), 1000U);
  EXPECT_GE(result.elapsed, Microseconds(1000));
}

TEST_F(KvRunTest, WritesWithinTheIntervalAreCountedAndNoOthers) {
  share({{OperationKind::update, 1}});
  point_.settings.set("warmup", 50);
  const Measurement result = run();
  EXPECT_EQ(result.writes().total().stores, 1000U);
  EXPECT_EQ(result.writes().total().field_bits, 1000U * 64 * 8);
}

TEST_F(KvRunTest, AServerThatDoesNothingCostsNothing) {
  share({{OperationKind::read, 1}});
  EXPECT_EQ(run().costs_of("server").cpu, Picoseconds{});
  EXPECT_GT(run().costs_of("client").cpu, Picoseconds{});
}

TEST_F(KvRunTest, DeferredWorkIsAwaitedBeforeAndAfterTheInterval) {
  run();
  EXPECT_GE(test::fake_counts().settled, 2);
}

TEST_F(KvRunTest, SpreadsClientsOverNodesAndKeysOverPartitions) {
  point_.settings.set("clients", 5);
  point_.settings.set("server_threads", 3);
  point_.roles = client_server(2);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.operations(), 1000U);
  EXPECT_EQ(test::fake_counts().sessions_opened, 15);
}

TEST_F(KvRunTest, SaysHowMuchOfTheStoreWasUsedAtTheEnd) {
  EXPECT_EQ(run().space.used_percent(), std::nullopt) << "the system does not say";
  point_.parameters["space"] = 200;  // of which the fake says that 100 are free
  point_.settings.set("server_threads", 2);
  const Measurement result = run();
  EXPECT_EQ(result.space.capacity, 400U) << "both partitions";
  EXPECT_EQ(result.space.used_percent(), 75.0);
}

TEST_F(KvRunTest, FillsAStoreUntilItIsOutOfSpace) {
  share({{OperationKind::insert, 1}});
  own_workload(point_).spec.record_count = 0;
  point_.settings.set("until_full", true);
  point_.parameters["capacity"] = 70;
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.operations(), 70U) << "the one that was refused does not count";
  EXPECT_EQ(result.kinds.at(bench::kind_of(OperationKind::insert)).errors, 0U);
}

TEST_F(KvRunTest, AStoreThatIsNotFullWasNotFilled) {
  share({{OperationKind::insert, 1}});
  own_workload(point_).spec.record_count = 0;
  point_.settings.set("until_full", true);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_EQ(result.reason,
            "client 0: the store was not full after 1000 operations; raise operations");
}

TEST_F(KvRunTest, RecordsNothingOverTimeUnlessAsked) {
  point_.parameters["space"] = 4096;
  const Measurement result = run();
  EXPECT_FALSE(result.timeline.recorded());
  EXPECT_TRUE(result.timeline.operations.empty());
  EXPECT_TRUE(result.timeline.spaces.empty());
}

TEST_F(KvRunTest, RecordsEachOperationOverTime) {
  point_.settings.set("clients", 3);
  point_.roles = client_server(2);
  point_.timeline_interval = Microseconds(50);
  point_.settings.set("warmup", 40);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  const auto intervals = divide(result.timeline);
  ASSERT_GT(intervals.size(), 3U);
  std::uint64_t operations = 0;
  double sum = 0;
  std::uint64_t largest = 0;
  for (const auto& interval : intervals) {
    operations += interval.operations;
    sum += interval.mean_ns.value_or(0) * static_cast<double>(interval.operations);
    largest = std::max(largest, interval.max_ns.value_or(0));
  }
  EXPECT_EQ(operations, 1000U);
  measure::Histogram all;
  for (const auto& [kind, measured] : result.kinds) all.merge(measured.latency);
  EXPECT_NEAR(sum / 1000, all.mean(), 0.001);
  EXPECT_EQ(largest, all.max());
  const Picoseconds last = intervals.back().start;
  EXPECT_LE(last, result.elapsed);
  EXPECT_GT(last + Microseconds(50), result.elapsed);
}

TEST_F(KvRunTest, SamplesTheSpaceOfAllPartitionsWhileItMeasures) {
  point_.settings.set("server_threads", 3);
  point_.timeline_interval = Microseconds(50);
  point_.parameters["space"] = 4096;
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  const auto& spaces = result.timeline.spaces;
  ASSERT_GE(spaces.size(), 3U);
  for (const auto& space : spaces) {
    EXPECT_EQ(space.capacity, 3U * 4096);
    EXPECT_EQ(space.free, 100U);  // the records, all of which are loaded before
    EXPECT_EQ(space.cleanings, 9U);
    EXPECT_EQ(space.cleanings_now, 3U);
  }
  EXPECT_LE(spaces.front().at, result.timeline.begin + Microseconds(50));
  EXPECT_GE(spaces.back().at, result.timeline.begin + result.elapsed);
  EXPECT_EQ(spaces[2].at - spaces[1].at, Microseconds(50));
}

TEST_F(KvRunTest, ASystemThatDoesNotSayHowFullItIsHasNoSpaces) {
  point_.timeline_interval = Microseconds(50);
  const Measurement result = run();
  EXPECT_TRUE(result.timeline.spaces.empty());
  EXPECT_FALSE(divide(result.timeline).front().free_percent);
}

TEST_F(KvRunTest, OverTimeAPartitionThatCannotBeOpenedIsNotAskedForItsSpace) {
  point_.timeline_interval = Microseconds(50);
  point_.parameters["refuse_open"] = 1;
  EXPECT_EQ(run().usage_error, "the fake was told to refuse");
}

TEST_F(KvRunTest, LeavesNothingBehind) {
  point_.settings.set("clients", 3);
  point_.settings.set("server_threads", 2);
  run();
  EXPECT_EQ(test::fake_counts().sessions_alive, 0);
  EXPECT_EQ(test::fake_counts().partitions_alive, 0);
}

TEST_F(KvRunTest, KeepsAsManyOperationsUnderWayAsTheQueueIsDeep) {
  share({{OperationKind::read, 1}});
  const Picoseconds one_by_one = run().elapsed;
  point_.settings.set("queue_depth", 8);
  const Measurement result = run();
  EXPECT_EQ(result.operations(), 1000U);
  EXPECT_LT(result.elapsed * 2, one_by_one);
}

TEST_F(KvRunTest, CreatesAndDeletesEachKeyOnce) {
  share({{OperationKind::insert, 0.5}, {OperationKind::erase, 0.5}});
  point_.settings.set("clients", 3);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.kinds.at(bench::kind_of(OperationKind::erase)).not_found, 0U);
}

TEST_F(KvRunTest, ReadModifyWriteDoesBoth) {
  share({{OperationKind::read_modify_write, 1}});
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.writes().total().stores, 1000U);
  EXPECT_GE(result.kinds.at(bench::kind_of(OperationKind::read_modify_write)).latency.min(), 2000U);
}

TEST_F(KvRunTest, TheSameSeedGivesTheSameMeasurement) {
  point_.settings.set("clients", 4);
  const auto first = run().serialize();
  EXPECT_EQ(run().serialize(), first);
  point_.seed = 2;
  EXPECT_NE(run().serialize(), first);
}

TEST_F(KvRunTest, AValueThatNobodyWroteMakesThePointInvalid) {
  point_.parameters["garble_every"] = 100;
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_NE(result.reason.find("yielded a value that nobody wrote"), std::string::npos)
      << result.reason;
  EXPECT_EQ(result.operations(), 1000U) << "the run goes on";
  EXPECT_GE(result.kinds.at(bench::kind_of(OperationKind::read)).errors, 3U);
}

TEST_F(KvRunTest, ALostRecordMakesThePointInvalid) {
  point_.parameters["lose_every"] = 100;
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_NE(result.reason.find("found nothing, though the record exists"), std::string::npos)
      << result.reason;
  EXPECT_GE(result.kinds.at(bench::kind_of(OperationKind::read)).not_found, 3U);
  EXPECT_EQ(result.kinds.at(bench::kind_of(OperationKind::read)).errors, 0U);
}

TEST_F(KvRunTest, AMissingRecordIsNoErrorWhereTheWorkloadDeletes) {
  share({{OperationKind::read, 0.9}, {OperationKind::erase, 0.1}});
  own_workload(point_).spec.operation_count = 500;
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_GT(result.kinds.at(bench::kind_of(OperationKind::read)).not_found, 0U);
}

TEST_F(KvRunTest, AnErrorOfTheSystemMakesThePointInvalid) {
  point_.parameters["corrupt_every"] = 100;
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_NE(result.reason.find("ended with 'corrupt'"), std::string::npos) << result.reason;
  const auto& reads = result.kinds.at(bench::kind_of(OperationKind::read));
  EXPECT_EQ(reads.latency.count() + reads.errors, reads.operations);
}

TEST_F(KvRunTest, ChecksTheHistoryOfAllClientsSinceLoading) {
  share({{OperationKind::read, 0.5},
         {OperationKind::update, 0.2},
         {OperationKind::insert, 0.2},
         {OperationKind::erase, 0.1}});
  point_.settings.set("clients", 4);
  point_.settings.set("queue_depth", 2);
  point_.settings.set("warmup", 60);
  point_.settings.set("check_history", true);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.operations_checked, 100U + 60 + 1000);
  EXPECT_TRUE(result.evidence.empty()) << "it has been used";
}

TEST_F(KvRunTest, CheckingTheHistoryChangesNothingThatIsMeasured) {
  point_.settings.set("clients", 3);
  const Measurement without = run();
  EXPECT_EQ(without.operations_checked, 0U);
  point_.settings.set("check_history", true);
  Measurement with = run();
  EXPECT_EQ(with.operations_checked, 1100U);
  with.operations_checked = 0;
  EXPECT_EQ(with.serialize(), without.serialize());
}

TEST_F(KvRunTest, ALostUpdateOfShortValuesIsFoundToo) {
  point_.settings.set("clients", 3);
  point_.settings.set("check_history", true);
  for (const Bytes size : {8U, 15U}) {
    own_workload(point_).spec.field_length = size;
    point_.parameters.clear();
    EXPECT_EQ(run().verdict, Verdict::valid);
    point_.parameters["drop_every"] = 100;
    EXPECT_EQ(run().verdict, Verdict::invalid);
  }
}

TEST_F(KvRunTest, ALostUpdateIsFoundByTheHistoryOnly) {
  point_.settings.set("clients", 3);
  point_.parameters["drop_every"] = 100;
  EXPECT_EQ(run().verdict, Verdict::valid);
  point_.settings.set("check_history", true);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_NE(result.reason.find("of 100 keys are not linearizable; key "), std::string::npos)
      << result.reason;
  EXPECT_NE(result.reason.find("(stale read, or lost update)"), std::string::npos) << result.reason;
  EXPECT_EQ(result.reason.find('\n'), std::string::npos);
  // The key has the workload's number.
  const auto key = std::stoull(result.reason.substr(result.reason.find("; key ") + 6));
  EXPECT_LT(key, 100U);
}

TEST_F(KvRunTest, AReadModifyWriteIsTwoOperationsOfTheHistory) {
  share({{OperationKind::read_modify_write, 1}});
  point_.settings.set("check_history", true);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.operations_checked, 100U + 2 * 1000);
}

TEST_F(KvRunTest, ARunThatFailedIsNotChecked) {
  share({{OperationKind::insert, 1}});
  point_.parameters["capacity"] = 150;
  point_.settings.set("check_history", true);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.operations_checked, 0U);
}

TEST_F(KvRunTest, AStoreThatIsFullFailsThePoint) {
  share({{OperationKind::insert, 1}});
  point_.parameters["capacity"] = 150;
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "client 0: insert of key 150 ended with 'out of space'");
}

TEST_F(KvRunTest, AStoreThatCannotBeLoadedFailsThePoint) {
  point_.parameters["capacity"] = 99;
  point_.settings.set("clients", 2);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_NE(result.reason.find("loading ended with 'out of space' after 49 records"),
            std::string::npos)
      << result.reason;
  EXPECT_EQ(result.operations(), 0U);
}

TEST_F(KvRunTest, AnImpossibleConfigurationIsTheUsersMistake) {
  point_.parameters["refuse_open"] = 1;
  EXPECT_EQ(run().usage_error, "the fake was told to refuse");
}

TEST_F(KvRunTest, AServerThatCannotBeReachedFailsThePoint) {
  point_.parameters["refuse_connect"] = 1;
  point_.settings.set("clients", 2);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(result.reason, "client 0: nobody serves the fake");
}

TEST_F(KvRunTest, RefusesWhatItCannotDriveBeforeAnythingRuns) {
  point_.settings.set("workload", "w", "x.toml:9");
  point_.settings.system.where = "x.toml:8";
  own_workload(point_).name = "w";
  const auto error = [&]() -> std::string {
    try {
      run();
      return "no error";
    } catch (const UsageError& usage) {
      return usage.what();
    }
  };
  share({{OperationKind::scan, 1}});
  EXPECT_EQ(error(),
            "x.toml:9: workload w scans, and only driver lmdb does; leave it out, or set its "
            "scanproportion to 0");
  point_.settings.set("check_history", true);
  own_workload(point_).spec.field_length = 7;
  share({{OperationKind::read, 1}});
  EXPECT_EQ(error(),
            "x.toml:9: check_history needs values of at least 8 bytes, which hold their version; w "
            "has some of 7; raise value_size");
  point_.settings.set("check_history", false);
  point_.settings.set("resizes", 3);
  point_.parameters["resizes"] = 2;
  EXPECT_EQ(error(), "x.toml:8: resizes is given to fake and to all systems; remove one of them");
  point_.parameters = {{"capacity", 0}};
  EXPECT_EQ(error(), "x.toml:8: fake: capacity is 0");
  point_.parameters.clear();
  point_.settings.unset("resizes");
  share({{OperationKind::erase, 1}});
  EXPECT_EQ(error(),
            "x.toml:9: w deletes 1000 records, warm-up included, of 100; raise records or lower "
            "operations");
  point_.settings.system = {"other", "x.toml:8"};
  EXPECT_EQ(error(), "x.toml:8: unknown system 'other'; known are: fake");
}

}  // namespace
}  // namespace perdura::bench
