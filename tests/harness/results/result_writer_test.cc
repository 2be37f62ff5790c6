#include "harness/results/result_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/results/atomic_file.h"
#include "platform/error.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ifstream input(file);
  std::stringstream text;
  text << input.rdbuf();
  return text.str();
}

class ResultWriterTest : public testing::Test {
 protected:
  Manifest manifest() {
    return {.experiment = "x",
            .platform = "sim",
            .modelled = true,
            .profile = "p",
            .profile_text = "name = \"p\" # ü\n",
            .points = 2,
            .started = "2020-01-01T00:00:00Z",
            .command_line = "perdura run x",
            .machine = {}};
  }
  static PointResult result(std::string system) {
    return {{.experiment = "x", .platform = "sim", .system = std::move(system)}, {}};
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  test::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path() / "out";
};

TEST_F(ResultWriterTest, LeavesTheDocumentedFilesAndNothingElse) {
  ResultWriter writer(folder_, "name = \"x\"\n", manifest());
  writer.add(0, result("a"));
  writer.add(1, result("b"));
  writer.finish(RunStatus::complete);
  EXPECT_EQ(files(), (std::vector<std::string>{"experiment.toml", "histograms.csv", "manifest.json",
                                               "points.csv"}));
  EXPECT_EQ(read(folder_ / "experiment.toml"), "name = \"x\"\n");
  const auto json = nlohmann::json::parse(read(folder_ / "manifest.json"));
  EXPECT_EQ(json["status"], "complete");
  EXPECT_EQ(json["points_done"], 2);
  EXPECT_EQ(json["provenance"], "modelled");
  EXPECT_EQ(json["profile"]["text"], "name = \"p\" # ü\n");
  EXPECT_EQ(json["command_line"], "perdura run x");
  EXPECT_FALSE(json["version"].get<std::string>().empty());
}

TEST_F(ResultWriterTest, KeepsTheOrderOfTheSweepWhateverComesFirst) {
  ResultWriter writer(folder_, "", manifest());
  writer.add(1, result("second"));
  writer.add(0, result("first"));
  writer.finish(RunStatus::complete);
  const std::string points = read(folder_ / "points.csv");
  EXPECT_LT(points.find("first"), points.find("second"));
}

TEST_F(ResultWriterTest, AnInterruptedSweepKeepsWhatIsDone) {
  ResultWriter writer(folder_, "", manifest());
  writer.add(1, result("second"));
  writer.finish(RunStatus::interrupted);
  EXPECT_NE(read(folder_ / "points.csv").find("second"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(read(folder_ / "manifest.json"))["status"], "interrupted");
}

TEST_F(ResultWriterTest, NeverOverwritesResults) {
  fs::create_directories(folder_);
  { ResultWriter writer(folder_, "", manifest()); }  // an empty folder is fine
  try {
    ResultWriter writer(folder_, "", manifest());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), "--out " + folder_.string() +
                                ": the folder is not empty; give a new one, results are never "
                                "overwritten");
  }
}

TEST_F(ResultWriterTest, RefusesAFile) {
  std::ofstream(folder_) << "x";
  EXPECT_THROW(ResultWriter(folder_, "", manifest()), UsageError);
}

TEST_F(ResultWriterTest, NumbersFoldersFromOne) {
  EXPECT_EQ(next_result_folder(folder_, "x", "sim"), folder_ / "x-sim-1");
  fs::create_directories(folder_ / "x-sim-1");
  EXPECT_EQ(next_result_folder(folder_, "x", "sim"), folder_ / "x-sim-2");
}

TEST_F(ResultWriterTest, AFileThatCannotBeWrittenIsNamed) {
  try {
    write_atomically(folder_ / "missing" / "file", "text");
    FAIL();
  } catch (const PlatformError& error) {
    EXPECT_EQ(error.what(), (folder_ / "missing" / "file").string() +
                                ": cannot be written: No such file or directory");
  }
}

}  // namespace
}  // namespace perdura::harness
