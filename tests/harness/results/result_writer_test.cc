#include "harness/results/result_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "harness/schema/file_record.h"
#include "harness/text/atomic_file.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
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
            .sessions = {{.started = "2020-01-01T00:00:00Z", .command_line = "perdura run x"}}};
  }
  static PointResult result(std::string system) {
    return {{.experiment = "x", .platform = "sim", .system = std::move(system)}, {}};
  }
  static PointTime time(std::string label) {
    return {std::move(label), 100, std::chrono::milliseconds(250)};
  }
  ResultWriter begin(const std::string& experiment = "") {
    return {folder_, experiment, {{"build", "b"}}, manifest()};
  }
  InterruptedSweep reopened() {
    auto sweep = open_interrupted(folder_);
    EXPECT_TRUE(sweep);
    return std::move(*sweep);
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
  ResultWriter writer = begin("name = \"x\"\n");
  writer.add(0, result("a"), time("a"));
  writer.add(1, result("b"), time("b"));
  writer.finish(RunStatus::complete);
  EXPECT_EQ(files(), (std::vector<std::string>{"experiment.toml", "histograms.csv", "manifest.json",
                                               "points.csv", "times.csv"}));
  EXPECT_EQ(read(folder_ / "experiment.toml"), "name = \"x\"\n");
  const auto json = Json::parse(read(folder_ / "manifest.json"));
  EXPECT_EQ(json["status"], "complete");
  EXPECT_EQ(json["points_done"], 2);
  EXPECT_EQ(json["provenance"], "modelled");
  EXPECT_EQ(json["profile"]["text"], "name = \"p\" # ü\n");
  EXPECT_EQ(json["sessions"][0]["command_line"], "perdura run x");
  EXPECT_FALSE(json["version"].get<std::string>().empty());
  EXPECT_EQ(read(folder_ / "times.csv"),
            "point,label,operations,wall_s\n1,a,100,0.250000\n2,b,100,0.250000\n");
}

TEST_F(ResultWriterTest, WhatWasAddedIsThereAtOnceEvenIfNobodyFinishes) {
  {
    ResultWriter writer = begin();
    writer.add(1, result("b"), time("b"));
  }
  const InterruptedSweep sweep = reopened();
  EXPECT_EQ(sweep.identity, (Identity{{"build", "b"}}));
  const JournalContents contents = contents_of(sweep, folder_);
  ASSERT_EQ(contents.points.size(), 1U);
  EXPECT_EQ(contents.points[0].index, 1U);
  EXPECT_EQ(contents.points[0].wall, std::chrono::milliseconds(250));
  ASSERT_EQ(contents.sessions.size(), 1U);
  EXPECT_EQ(contents.sessions[0].command_line, "perdura run x");
}

TEST_F(ResultWriterTest, FinishesWhatAnotherBegan) {
  {
    ResultWriter writer = begin();
    writer.add(1, result("b"), time("b"));
    std::ofstream(folder_ / "points.csv.123.tmp") << "half";
  }
  Manifest continued = manifest();
  continued.sessions.push_back({.started = "2020-01-02T00:00:00Z", .command_line = "again"});
  ResultWriter writer(folder_, reopened(), continued);
  EXPECT_THROW(open_interrupted(folder_), UsageError) << "one process at a time";
  writer.restore(1, result("b"), time("b"));
  writer.add(0, result("a"), time("a"));
  EXPECT_TRUE(writer.has(0));
  writer.finish(RunStatus::complete);
  EXPECT_EQ(files(), (std::vector<std::string>{"experiment.toml", "histograms.csv", "manifest.json",
                                               "points.csv", "times.csv"}));
  const auto json = Json::parse(read(folder_ / "manifest.json"));
  EXPECT_EQ(json["points_done"], 2);
  EXPECT_EQ(json["sessions"].size(), 2U);
  EXPECT_FALSE(open_interrupted(folder_)) << "it is complete";
}

TEST_F(ResultWriterTest, APointThatIsInTheJournalTwiceIsRefused) {
  { ResultWriter writer = begin(); }
  {
    Journal journal = Journal::open(journal_file(folder_));
    for (int i = 0; i < 2; ++i) journal.append(journal_record(FinishedPoint{.index = 1}));
  }
  try {
    contents_of(reopened(), folder_);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), journal_file(folder_).string() +
                                ": record 3 cannot be used: its point is there twice; run the "
                                "experiment again in a new folder");
  }
}

TEST_F(ResultWriterTest, KeepsTheOrderOfTheSweepWhateverComesFirst) {
  ResultWriter writer = begin();
  writer.add(1, result("second"), time("second"));
  writer.add(0, result("first"), time("first"));
  writer.finish(RunStatus::complete);
  const std::string points = read(folder_ / "points.csv");
  EXPECT_LT(points.find("first"), points.find("second"));
}

TEST_F(ResultWriterTest, AnInterruptedSweepKeepsWhatIsDone) {
  ResultWriter writer = begin();
  writer.add(1, result("second"), time("second"));
  writer.finish(RunStatus::interrupted);
  EXPECT_NE(read(folder_ / "points.csv").find("second"), std::string::npos);
  EXPECT_EQ(Json::parse(read(folder_ / "manifest.json"))["status"], "interrupted");
}

TEST_F(ResultWriterTest, NeverOverwritesResults) {
  fs::create_directories(folder_);
  { ResultWriter writer = begin(); }  // an empty folder is fine
  try {
    ResultWriter writer = begin();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), "--out " + folder_.string() +
                                ": the folder is not empty; give a new one, results are never "
                                "overwritten, or finish its sweep with --continue " +
                                folder_.string());
  }
}

TEST_F(ResultWriterTest, RefusesAFile) {
  std::ofstream(folder_) << "x";
  EXPECT_THROW(begin(), UsageError);
}

TEST_F(ResultWriterTest, TheManifestSaysWhatEachTableHolds) {
  ResultWriter writer = begin();
  EXPECT_TRUE(schema::check_against_manifest(folder_)) << "from the beginning";
  writer.add(1, result("b"), time("b"));
  EXPECT_TRUE(schema::check_against_manifest(folder_));
  writer.finish(RunStatus::interrupted);
  EXPECT_EQ(schema::check_against_manifest(folder_), "");
  const auto json = Json::parse(read(folder_ / "manifest.json"));
  EXPECT_EQ(json["files"].size(), 2U);
  EXPECT_EQ(json["files"]["points.csv"]["rows"], 1);
  EXPECT_FALSE(json.contains("files_before"));
  std::ofstream(folder_ / "histograms.csv", std::ios::app) << "0,service,1,1\n";
  EXPECT_FALSE(schema::check_against_manifest(folder_));
}

// As on a disk that is full: a file has no room for the rows, one as small as the manifest has.
TEST_F(ResultWriterTest, WhatCouldNotBeWrittenIsAsTheManifestSaysItWasBefore) {
  Manifest many = manifest();
  many.points = 100;
  ResultWriter writer(folder_, "", {{"build", "b"}}, many);
  for (std::size_t i = 0; i < many.points; ++i) writer.add(i, result("a"), time("a"));
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit tight{fs::file_size(folder_ / "manifest.json") + 1000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_THROW(writer.finish(RunStatus::interrupted), PlatformError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  const auto json = Json::parse(read(folder_ / "manifest.json"));
  EXPECT_EQ(json["status"], "interrupted");
  EXPECT_NE(json["files"]["points.csv"], json["files_before"]["points.csv"]);
  const auto checked = schema::check_against_manifest(folder_);
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST_F(ResultWriterTest, AnotherThreadCanWriteWhatThereIs) {
  ResultWriter writer = begin();
  writer.add(1, result("second"), time("second"));
  std::thread([&writer] {
    EXPECT_EQ(writer.finish_for_another(std::chrono::milliseconds(0)),
              ResultWriter::Finish::finished);
  }).join();
  EXPECT_NE(read(folder_ / "points.csv").find("second"), std::string::npos);
  EXPECT_EQ(Json::parse(read(folder_ / "manifest.json"))["status"], "interrupted");
  // From then on nobody changes what was said.
  std::thread([&writer] {
    EXPECT_EQ(writer.finish_for_another(std::chrono::milliseconds(0)), ResultWriter::Finish::busy);
  }).join();
}

TEST_F(ResultWriterTest, WhatWasFinishedIsLeftAsItIs) {
  ResultWriter writer = begin();
  writer.add(0, result("a"), time("a"));
  writer.add(1, result("b"), time("b"));
  writer.finish(RunStatus::complete);
  EXPECT_EQ(writer.finish_for_another(std::chrono::milliseconds(0)),
            ResultWriter::Finish::was_finished);
  EXPECT_EQ(Json::parse(read(folder_ / "manifest.json"))["status"], "complete");
}

TEST_F(ResultWriterTest, ACompleteSweepThatIsChangedIsNotContinued) {
  {
    ResultWriter writer = begin();
    writer.add(0, result("a"), time("a"));
    writer.add(1, result("b"), time("b"));
    writer.finish(RunStatus::complete);
  }
  std::ofstream(folder_ / "points.csv", std::ios::app) << "1,2,3\n";
  EXPECT_THROW(open_interrupted(folder_), UsageError);
}

TEST_F(ResultWriterTest, NumbersFoldersFromOne) {
  EXPECT_EQ(next_result_folder(folder_, "x", "sim"), folder_ / "x-sim-1");
  EXPECT_TRUE(fs::is_empty(folder_ / "x-sim-1"));
  fs::create_directories(folder_ / "x-sim-2");
  EXPECT_EQ(next_result_folder(folder_, "x", "sim"), folder_ / "x-sim-3");
}

// Two runs that begin at once are two runs.
TEST_F(ResultWriterTest, GivesEachOfManyAtOnceAFolderOfItsOwn) {
  constexpr std::size_t kAtOnce = 16;
  std::vector<fs::path> folders(kAtOnce);
  std::vector<std::thread> threads;
  for (fs::path& folder : folders) {
    threads.emplace_back([&] { folder = next_result_folder(folder_, "x", "sim"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<fs::path>(folders.begin(), folders.end()).size(), kAtOnce);
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
