// points.csv is written as docs/results.md says and as `perdura report` reads it.
#include "harness/results/points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "harness/schema/columns.h"
#include "report/points.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

const OperationKind kReads{0, "read"};
const OperationKind kUpdates{1, "update"};

PointResult sample() {
  PointResult result;
  result.identity = {.experiment = "x",
                     .platform = "sim",
                     .modelled = true,
                     .profile = "p",
                     .system = "erda",
                     .parameters = {{"workload", "workloada"},
                                    {"key_size", "16"},
                                    {"value_size", "64"},
                                    {"records", "1000"},
                                    {"clients", "1"},
                                    {"queue_depth", "1"},
                                    {"server_threads", "1"},
                                    {"load", "closed"}},
                     .seed = 1};
  Measurement& measurement = result.measurement;
  measurement.kinds[kUpdates];
  measurement.kinds[kReads].operations = 4;
  for (const std::uint64_t latency : {1000, 2000, 3000, 4000}) {
    measurement.kinds[kReads].latency.record(latency);
  }
  measurement.elapsed = Microseconds(2);
  measurement.at_work = {{0, Time(), Time(Microseconds(2)), 3}};
  measurement.roles["server"].cpu = Microseconds(2);
  measurement.roles["server"].writes.local_store.field_bits = 4 * 33;
  measurement.roles["server"].writes.local_store.bytes_programmed = 8;
  return result;
}

class PointsTest : public testing::Test {
 protected:
  report::Points read(const std::vector<const PointResult*>& results) {
    const auto file = folder_.path() / "points.csv";
    std::ofstream(file) << points_csv(results);
    auto points = report::Points::read(file);
    EXPECT_TRUE(points) << points.error().message;
    return std::move(*points);
  }

  test::TemporaryFolder folder_;
};

TEST_F(PointsTest, OneKindOfOperationGivesOneRow) {
  const PointResult result = sample();
  const report::Points points = read({&result});
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points.text(0, "operation"), "all");
  EXPECT_EQ(points.text(0, "provenance"), "modelled");
  EXPECT_EQ(points.text(0, "operations"), "4");
  EXPECT_EQ(points.text(0, "elapsed_s"), "2e-06");
  EXPECT_EQ(points.text(0, "throughput_ops_s"), "1500000");
  EXPECT_EQ(points.text(0, "tail_percent"), "25");
  EXPECT_EQ(points.text(0, "long_tail"), "yes");
  EXPECT_EQ(points.text(0, "latency_mean_us"), "2.5");
  EXPECT_EQ(points.text(0, "latency_max_us"), "4");
  EXPECT_EQ(points.text(0, "latency_p99_us"), "") << "four samples have no 99th percentile";
  EXPECT_EQ(points.text(0, "server_cpu_us_per_op"), "0.5");
  EXPECT_EQ(points.text(0, "nvm_field_bytes_per_op"), "4.125");
  EXPECT_EQ(points.text(0, "one_sided_reads_per_op"), "0");
  EXPECT_EQ(points.text(0, "space_used_percent"), "") << "the system does not say";
  EXPECT_EQ(points.text(0, "resizes"), "") << "the experiment does not say";
}

// Files of a model are the same bytes wherever they are made.
TEST_F(PointsTest, OnlyRowsOfRealPlatformsTellOfTheirHost) {
  PointResult result = sample();
  EXPECT_EQ(points_csv({&result}).find("noise"), std::string::npos);
  result.identity.platform = "shm";
  result.identity.modelled = false;
  EXPECT_EQ(read({&result}).text(0, "noise"), "") << "it failed before anything was measured";
  result.measurement.noise = {.load_average = 1.5, .runnable = 2, .waiting = 3, .steal_percent = 0};
  const report::Points points = read({&result});
  EXPECT_EQ(points.text(0, "noise"), "crowded");
  EXPECT_TRUE(points.noisy(0));
  EXPECT_EQ(points.text(0, "load_average"), "1.5");
  EXPECT_EQ(points.text(0, "runnable_before_per_core"), "");
  EXPECT_EQ(points.text(0, "runnable_per_core"), "2");
  EXPECT_EQ(points.text(0, "waiting_threads"), "3");
  EXPECT_EQ(points.text(0, "steal_percent"), "0");
  EXPECT_EQ(points.text(0, "slowdown_percent"), "");
  result.measurement.noise = HostNoise{.waiting = 0.1};
  EXPECT_FALSE(read({&result}).noisy(0));
}

TEST_F(PointsTest, TellsReadsAndSpace) {
  PointResult result = sample();
  result.identity.parameters["resizes"] = "3";
  result.measurement.one_sided_reads = 6;
  result.measurement.space = {80, 20};
  const report::Points points = read({&result});
  EXPECT_EQ(points.text(0, "resizes"), "3");
  EXPECT_EQ(points.text(0, "one_sided_reads_per_op"), "1.5");
  EXPECT_EQ(points.text(0, "space_used_percent"), "75");
}

TEST_F(PointsTest, SeveralKindsHaveARowEach) {
  PointResult result = sample();
  result.measurement.kinds[kUpdates].operations = 4;
  const report::Points points = read({&result});
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points.text(0, "operation"), "all");
  EXPECT_EQ(points.text(1, "operation"), "read");
  EXPECT_EQ(points.text(2, "operation"), "update");
  EXPECT_EQ(points.text(0, "operations"), "8");
  EXPECT_EQ(points.text(0, "server_cpu_us_per_op"), "0.25");
  for (const auto column : {"elapsed_s", "throughput_ops_s", "tail_percent", "long_tail",
                            "server_cpu_us_per_op", "nvm_field_bytes_per_op", "torn_reads"}) {
    EXPECT_EQ(points.text(1, column), "") << column;
  }
}

TEST_F(PointsTest, WhatNeedsComparisonIsEmptyWithoutIt) {
  PointResult result = sample();
  EXPECT_EQ(read({&result}).text(0, "nvm_bytes_programmed_per_op"), "");
  EXPECT_EQ(read({&result}).text(0, "nvm_media_bytes_per_op"), "");
  result.identity.accounting = pmem::WriteMeter::Level::compared;
  EXPECT_EQ(read({&result}).text(0, "nvm_bytes_programmed_per_op"), "2");
  EXPECT_EQ(read({&result}).text(0, "nvm_media_bytes_per_op"), "0");
}

TEST_F(PointsTest, ReasonsAreQuoted) {
  PointResult result = sample();
  result.measurement.judge(Verdict::failed, "a, \"b\"\nc");
  EXPECT_NE(points_csv({&result}).find(",failed,\"a, \"\"b\"\"\nc\","), std::string::npos);
  EXPECT_EQ(read({&result}).text(0, "reason"), "a, \"b\"\nc");
}

TEST_F(PointsTest, AResponderIsNamedAsFarAsItIsSaid) {
  PointResult result = sample();
  result.identity.parameters["domain"] = "dmp";
  result.identity.parameters["ddio"] = "off";
  result.identity.parameters["receive_buffers"] = "pm";
  result.identity.parameters["transport"] = "roce";
  result.identity.parameters["update"] = "ordered";
  result.identity.parameters["persistence"] = "correct";
  result.measurement.method = "ordered-send-flush";
  result.measurement.guarantee = "durable";
  const PointResult other = sample();
  const report::Points points = read({&result, &other});
  EXPECT_EQ(points.text(0, "domain"), "dmp");
  EXPECT_EQ(points.text(0, "ddio"), "off");
  EXPECT_EQ(points.text(0, "receive_buffers"), "pm");
  EXPECT_EQ(points.text(0, "transport"), "roce");
  EXPECT_EQ(points.text(0, "update"), "ordered");
  EXPECT_EQ(points.text(0, "persistence"), "correct");
  EXPECT_EQ(points.text(0, "method"), "ordered-send-flush");
  EXPECT_EQ(points.text(0, "guarantee"), "durable");
  for (const std::string column : {"domain", "ddio", "receive_buffers", "transport", "update",
                                   "persistence", "method", "guarantee"}) {
    EXPECT_EQ(points.text(1, column), "") << column;
    const auto keys = points.key_columns();
    const bool result_column = column == "method" || column == "guarantee";
    EXPECT_EQ(std::count(keys.begin(), keys.end(), column), result_column ? 0 : 1) << column;
  }
}

TEST_F(PointsTest, LatenciesHaveIntervalsWhereThereAreEnoughOfThem) {
  PointResult result = sample();
  measure::Histogram& latency = result.measurement.kinds[kReads].latency;
  EXPECT_EQ(read({&result}).text(0, "latency_mean_low_us"), "");
  latency.reset();
  for (std::uint64_t time = 1; time <= 1000; ++time) latency.record(time);
  const report::Points points = read({&result});
  // The ranks of the binomial distribution with n = 1000 (see interval_test.cc).
  EXPECT_EQ(points.text(0, "latency_p50_us"), "0.5");
  EXPECT_EQ(points.text(0, "latency_p50_low_us"), "0.469");
  EXPECT_EQ(points.text(0, "latency_p50_high_us"), "0.532");
  EXPECT_EQ(points.text(0, "latency_p90_low_us"), "0.881");
  EXPECT_EQ(points.text(0, "latency_p90_high_us"), "0.919");
  EXPECT_EQ(points.text(0, "latency_p99_us"), "0.99");
  EXPECT_EQ(points.text(0, "latency_p99_low_us"), "0.983");
  EXPECT_EQ(points.text(0, "latency_p99_high_us"), "0.997");
  EXPECT_NEAR(*points.number(0, "latency_mean_low_us"), 0.5005 - 0.01792, 1e-5);
  EXPECT_NEAR(*points.number(0, "latency_mean_high_us"), 0.5005 + 0.01792, 1e-5);
  for (const char* column : {"latency_p999_us", "latency_p999_low_us", "latency_p999_high_us",
                             "latency_p9999_us", "latency_p9999_low_us", "latency_p9999_high_us"}) {
    EXPECT_EQ(points.text(0, column), "") << column << ": too few samples";
  }
  latency.record(1000, 99'000);
  EXPECT_EQ(read({&result}).text(0, "latency_p9999_us"), "1");
}

TEST_F(PointsTest, APointWithoutOperationsHasNoNumbers) {
  PointResult result;
  result.identity = sample().identity;
  result.measurement.judge(Verdict::failed, "full");
  const report::Points points = read({&result});
  EXPECT_EQ(points.text(0, "operations"), "0");
  EXPECT_EQ(points.text(0, "latency_mean_us"), "");
  EXPECT_EQ(points.text(0, "throughput_ops_s"), "");
  EXPECT_EQ(points.text(0, "nvm_field_bytes_per_op"), "");
}

TEST_F(PointsTest, AClosedLoopHasNoTimesFromWhenItsOperationsWereDue) {
  const PointResult result = sample();
  const report::Points points = read({&result});
  EXPECT_EQ(points.text(0, "load"), "closed");
  for (const char* column : {"offered_load", "saturated", "response_mean_us", "response_p50_us",
                             "response_max_us", "harness_ns_per_op"}) {
    EXPECT_EQ(points.text(0, column), "") << column;
  }
}

TEST_F(PointsTest, AnOpenLoopHasBothTimes) {
  PointResult result = sample();
  result.identity.parameters["load"] = "poisson";
  result.identity.parameters["offered_load"] = "2000000";
  KindMeasurement& reads = result.measurement.kinds[kReads];
  reads.response.emplace().record(5000, 99);
  reads.response->record(9000);
  KindMeasurement& updates = result.measurement.kinds[kUpdates];
  updates.operations = 1;
  updates.response.emplace().record(7000);
  result.measurement.arrivals = Nanoseconds(1950);
  result.measurement.harness_per_operation = Picoseconds(61'500);
  const report::Points points = read({&result});
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points.text(0, "load"), "poisson");
  EXPECT_EQ(points.text(0, "offered_load"), "2000000");
  EXPECT_EQ(points.text(0, "saturated"), "no");
  EXPECT_EQ(points.text(0, "harness_ns_per_op"), "61.5");
  EXPECT_EQ(points.text(0, "latency_mean_us"), "2.5");
  EXPECT_EQ(points.text(1, "response_mean_us"), "5.04");
  EXPECT_EQ(points.text(1, "response_p90_us"), "5.003") << "the end of its bucket";
  EXPECT_EQ(points.text(1, "response_max_us"), "9");
  EXPECT_EQ(points.text(2, "response_max_us"), "7");
  EXPECT_EQ(points.text(1, "saturated"), "");
  for (const std::size_t row : {1U, 2U}) EXPECT_EQ(points.text(row, "harness_ns_per_op"), "61.5");
}

// The same times, so that one may be set beside the other.
TEST_F(PointsTest, ResponseTimesHaveTheStatisticsOfLatencies) {
  for (const std::uint64_t samples : {0U, 1U, 99U, 1000U, 100'000U}) {
    PointResult result = sample();
    KindMeasurement& reads = result.measurement.kinds[kReads];
    reads.latency.reset();
    for (std::uint64_t i = 1; i <= samples; ++i) reads.latency.record(i);
    reads.response = reads.latency;
    const report::Points points = read({&result});
    std::size_t compared = 0;
    for (const schema::Column& column : schema::point_columns()) {
      constexpr std::string_view kLatency = "latency_";
      if (!column.name.starts_with(kLatency)) continue;
      const std::string other = "response_" + std::string(column.name.substr(kLatency.size()));
      EXPECT_EQ(points.text(0, other), points.text(0, column.name)) << other;
      ++compared;
    }
    EXPECT_EQ(compared, 20U);
    EXPECT_EQ(points.text(0, "response_min_us").empty(), samples == 0);
    EXPECT_EQ(points.text(0, "response_p9999_high_us").empty(), samples < 100'000);
  }
}

TEST_F(PointsTest, EveryColumnIsDocumented) {
  std::ifstream input(PERDURA_SOURCE_DIR "/docs/results.md");
  std::stringstream text;
  text << input.rdbuf();
  PointResult recorded = sample();
  recorded.measurement.timeline.interval = Microseconds(1);
  const std::string csv = points_csv({});
  const std::string over_time = timeline_csv({&recorded});
  std::stringstream header(csv.substr(0, csv.find('\n')) + ',' +
                           over_time.substr(0, over_time.find('\n')));
  for (std::string column; std::getline(header, column, ',');) {
    std::string_view documented = column;
    std::string of_times;
    for (const std::string time : {"latency_", "response_"}) {
      if (!column.starts_with(time)) continue;
      const bool interval = column.ends_with("_low_us") || column.ends_with("_high_us");
      of_times = time + (interval ? "{mean,p50,p90,p99,p999,p9999}_{low,high}_us"
                                  : "{mean,min,p50,p90,p99,p999,p9999,max}_us");
      documented = of_times;
    }
    EXPECT_NE(text.str().find(documented), std::string::npos) << column;
  }
}

TEST(TimelineCsv, HasARowForEachIntervalOfThePointsThatWereRecorded) {
  PointResult recorded = sample();
  Timeline& timeline = recorded.measurement.timeline;
  timeline.interval = Microseconds(500);
  timeline.begin = Time(Microseconds(1000));
  timeline.operations = {{Time(Microseconds(1100)), 1500}, {Time(Microseconds(2300)), 2500}};
  timeline.spaces = {{Time(Microseconds(1600)), 80, 20, 3, 1}};
  const PointResult other = sample();
  EXPECT_EQ(
      timeline_csv({&other, &recorded}),
      "schema_version,experiment,platform,provenance,profile,system,workload,key_size,"
      "value_size,records,clients,queue_depth,server_threads,resizes,load,offered_load,domain,ddio,"
      "receive_"
      "buffers,"
      "transport,update,persistence,seed,repetition,time_ms,"
      "operations,latency_mean_us,latency_max_us,free_percent,cleanings,cleanings_now\n"
      "6,x,sim,modelled,p,erda,workloada,16,64,1000,1,1,1,,closed,,,,,,,,1,0,0,1,1.5,1.5,,,\n"
      "6,x,sim,modelled,p,erda,workloada,16,64,1000,1,1,1,,closed,,,,,,,,1,0,0.5,0,,,25,0,1\n"
      "6,x,sim,modelled,p,erda,workloada,16,64,1000,1,1,1,,closed,,,,,,,,1,0,1,1,2.5,2.5,25,0,1\n");
}

TEST(TimelineCsv, IsEmptyIfNothingWasRecorded) {
  const PointResult result = sample();
  EXPECT_EQ(timeline_csv({&result}), "");
}

TEST(Histograms, NameTheirRow) {
  PointResult first = sample();
  first.measurement.kinds[kUpdates].operations = 1;
  first.measurement.kinds[kUpdates].latency.record(7);
  PointResult second = sample();
  second.measurement.kinds[kReads].response.emplace().record(5000, 4);
  EXPECT_EQ(histograms_csv({&first, &second}),
            "row,time,low_ns,count\n"
            "0,service,7,1\n0,service,1000,1\n0,service,2000,1\n0,service,3000,1\n"
            "0,service,4000,1\n"
            "1,service,1000,1\n1,service,2000,1\n1,service,3000,1\n1,service,4000,1\n"
            "2,service,7,1\n"
            "3,service,1000,1\n3,service,2000,1\n3,service,3000,1\n3,service,4000,1\n"
            "3,response,5000,4\n");
}

}  // namespace
}  // namespace perdura::harness
