#include "harness/run/estimate.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/config/document.h"
#include "platform/base/error.h"
#include "tests/harness/declarations.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

Point point(const std::string& label, std::uint64_t operations) {
  Point made;
  made.label = label;
  made.operations = operations;
  return made;
}

class EstimateTest : public testing::Test {
 protected:
  void put(const std::string& folder, const std::string& file, const std::string& text) {
    fs::create_directories(out_ / folder);
    std::ofstream(out_ / folder / file) << text;
  }
  void put_run(const std::string& folder, const std::string& experiment,
               const std::string& platform, int minutes) {
    put(folder, "manifest.json",
        R"({"experiment": ")" + experiment + R"(", "platform": ")" + platform +
            R"(", "points_done": 1})");
    put_times(folder, "1,erda,100,2.0\n");
    fs::last_write_time(out_ / folder / "times.csv",
                        fs::file_time_type(std::chrono::minutes(minutes)));
  }

  void put_times(const std::string& folder, const std::string& rows) {
    put(folder, "times.csv", "point,label,operations,wall_s\n" + rows);
    put(folder, "experiment.toml", kText);
  }
  static Experiment experiment(const std::string& more = "", const std::string& name = "e") {
    return read_experiment(
        Document::parse(kText + more, "e.toml",
                        std::vector<Override>{{"name", "\"" + name + "\"", "--set"}}),
        test::declarations());
  }
  PastRun past_run(const std::string& folder) { return read_past_run(out_ / folder, experiment()); }

  static inline const std::string kText =
      "name = \"e\"\n[workload]\nworkload = \"workloada\"\nsystem = \"erda\"\n";
  test::TemporaryFolder temporary_;
  const fs::path& out_ = temporary_.path();
};

TEST_F(EstimateTest, APointTakesAsLongAsBeforeInProportionToItsOperations) {
  put_times("run",
            "1,erda repetition=0,100,2.0\n2,erda repetition=1,100,4.0\n3,\"a, b\",600,2.0\n");
  const PastRun past = past_run("run");
  const Point points[] = {point("erda", 100), point("a, b", 1200), point("erda repetition=5", 50),
                          point("new", 1000)};
  const Estimate expected = estimate(points, past);
  EXPECT_EQ(expected.of_same_point, 3U);
  // The new one by the mean of all: 8 s for 800 operations.
  ASSERT_EQ(expected.seconds.size(), 4U);
  EXPECT_DOUBLE_EQ(expected.seconds[0], 3);
  EXPECT_DOUBLE_EQ(expected.seconds[1], 4);
  EXPECT_DOUBLE_EQ(expected.seconds[2], 1.5);
  EXPECT_DOUBLE_EQ(expected.seconds[3], 10);
  EXPECT_DOUBLE_EQ(expected.total, 18.5);
}

TEST_F(EstimateTest, TheLastRunOfTheSameExperimentAndPlatformCounts) {
  EXPECT_FALSE(find_past_run(out_ / "missing", experiment(), "sim"));
  put_run("old", "e", "sim", 1);
  put_run("new", "e", "sim", 3);
  put_run("middle", "e", "sim", 2);
  put_run("real", "e", "shm", 4);
  put_run("other", "f", "sim", 5);
  put("broken", "manifest.json", "{");
  put("broken", "times.csv", "");
  EXPECT_EQ(find_past_run(out_, experiment(), "sim")->folder, out_ / "new");
  EXPECT_EQ(find_past_run(out_, experiment(), "shm")->folder, out_ / "real");
  EXPECT_FALSE(find_past_run(out_, experiment("", "g"), "sim"));
}

TEST_F(EstimateTest, AFolderThatTellsNoTimesIsRefused) {
  EXPECT_THROW(past_run("missing"), UsageError);
  put_times("empty", "");
  EXPECT_THROW(past_run("empty"), UsageError);
  put_times("wrong", "1,erda,0,2.0\n");
  EXPECT_THROW(past_run("wrong"), UsageError);
  put("lacking", "times.csv", "point,label\n1,erda\n");
  put("lacking", "experiment.toml", kText);
  EXPECT_THROW(past_run("lacking"), UsageError);
}

TEST_F(EstimateTest, WhatEndsByTimeIsToldByTheSameExperimentOnly) {
  put_run("run", "e", "sim", 1);
  const std::string timed = "operations = 100\nduration_ms = 50\n";
  EXPECT_FALSE(find_past_run(out_, experiment(timed), "sim"));
  EXPECT_THROW(read_past_run(out_ / "run", experiment(timed)), UsageError);
  put("run", "experiment.toml", kText + timed);
  EXPECT_TRUE(find_past_run(out_, experiment(timed), "sim"));
  EXPECT_FALSE(find_past_run(out_, experiment(), "sim"));
}

}  // namespace
}  // namespace perdura::harness
