// perdura run --continue: a sweep that was killed is finished as if nothing had happened.
#include <sys/file.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "platform/base/json.h"
#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"
#include "tests/support/seed.h"
#include "tests/support/wait_until.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Twelve small points on the simulated testbed.
const std::string kSweep =
    "run erda-latency --set workload.operations=300 --set workload.warmup=0 "
    "--set 'matrix.workload=[\"workloada\"]' --set 'matrix.value_size=[16, 64, 256, 1024]' "
    "--set timeline.interval_us=1000 ";
constexpr std::size_t kPoints = 12;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream input(text);
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

// The labels of the points whose end the progress tells: "[3/12] (0:01 left) LABEL: mean ...".
std::vector<std::string> finished_points(const fs::path& log) {
  std::vector<std::string> labels;
  for (const std::string& line : lines_of(read(log))) {
    const std::size_t end = line.find(": mean ");
    if (!line.starts_with('[') || end == std::string::npos) continue;
    std::size_t start = line.find("] ") + 2;
    if (line[start] == '(') start = line.find(") ", start) + 2;
    labels.push_back(line.substr(start, end - start));
  }
  return labels;
}

class ContinueTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto began = std::chrono::steady_clock::now();
    const Outcome outcome = perdura(kSweep + "--out " + whole_.string());
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    duration_ = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
  }

  std::string begin_or_continue() {
    if (fs::exists(out_ / "journal") || fs::exists(out_ / "manifest.json")) {
      ++continued_;
      return "run --continue " + out_.string();
    }
    fs::remove_all(out_);  // killed before there was anything to keep
    return kSweep + "--out " + out_.string();
  }
  // A random moment of a run, from its start to what was its end.
  milliseconds random_moment() {
    return milliseconds(random_() % static_cast<unsigned>(duration_.count() + 1));
  }
  // No point was finished twice, and none was lost that was said to be finished.
  void note_finished() {
    for (const std::string& label : finished_points(log_)) {
      EXPECT_TRUE(finished_.insert(label).second) << label << " was run twice";
    }
  }
  // Runs the sweep, and kills it again and again until it ends by itself. The number of kills.
  std::size_t finish_with_kills(const std::function<std::string(const std::string&)>& command,
                                const std::function<void(Running&)>& kill) {
    fs::remove_all(out_);
    finished_.clear();
    for (std::size_t kills = 0;; ++kills) {
      Running program(command(begin_or_continue()), log_);
      if (program.ends_within(random_moment())) {
        EXPECT_EQ(program.wait(), 0) << read(log_);
        note_finished();
        return kills;
      }
      kill(program);
      note_finished();
    }
  }
  void expect_as_uninterrupted() const {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(out_)) files.insert(entry.path().filename());
    EXPECT_EQ(files, (std::set<fs::path>{"experiment.toml", "histograms.csv", "manifest.json",
                                         "points.csv", "timeline.csv", "times.csv"}));
    for (const auto file : {"points.csv", "histograms.csv", "timeline.csv", "experiment.toml"}) {
      EXPECT_EQ(read(out_ / file), read(whole_ / file)) << file;
    }
    auto ours = Json::parse(read(out_ / "manifest.json"));
    auto theirs = Json::parse(read(whole_ / "manifest.json"));
    EXPECT_EQ(theirs["sessions"].size(), 1U);
    ours.erase("sessions");
    theirs.erase("sessions");
    EXPECT_EQ(ours, theirs);
    EXPECT_EQ(lines_of(read(out_ / "times.csv")).size(), kPoints + 1);
  }
  // Leaves a sweep whose results could not be written any more, as on a full disk: no file may have
  // more than 32 KiB.
  Outcome fail_to_write() const {
    return shell(fmt::format("(trap '' XFSZ; ulimit -f 64; exec {})",
                             perdura_command(kSweep + "--quiet --out " + out_.string())));
  }
  // Leaves a sweep that was killed when some points were done, but not all.
  void kill_in_the_middle() {
    const std::string many = kSweep + "--set repetitions=999 --out " + out_.string();
    Running program(perdura_command(many), log_);
    ASSERT_TRUE(test::wait_until([this] { return finished_points(log_).size() >= 3; }));
    program.kill();
  }
  void expect_refused(const std::string& reason) const {
    const Outcome outcome = perdura("run --continue " + out_.string());
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(reason), std::string::npos) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  }

  test::TemporaryFolder temporary_;
  const fs::path whole_ = temporary_.path() / "whole";
  const fs::path out_ = temporary_.path() / "out";
  const fs::path log_ = temporary_.path() / "log";
  milliseconds duration_{};
  std::set<std::string> finished_;
  std::size_t continued_ = 0;
  const unsigned seed_ = perdura::test::random_seed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937 random_{seed_};
};

TEST_F(ContinueTest, ASweepKilledAtRandomMomentsGivesTheSameBytes) {
  for (std::size_t kills = 0; kills < 20;) {
    kills += finish_with_kills(perdura_command, [](Running& program) { program.kill(); });
    expect_as_uninterrupted();
  }
  EXPECT_GT(continued_, 0U) << "every kill came before there was anything to continue";
}

TEST_F(ContinueTest, SoDoesOneOfSeveralRanks) {
  const auto command = [](const std::string& arguments) { return mpirun_command(2, arguments); };
  // Starting ranks takes most of the time.
  duration_ = duration_ / 2 + milliseconds(1000);
  for (std::size_t kills = 0; kills < 3;) {
    kills += finish_with_kills(command, [](Running& program) { program.kill_ranks(); });
    expect_as_uninterrupted();
  }
}

TEST_F(ContinueTest, AnInterruptedSweepGoesOnWithOtherRanks) {
  fs::create_directory(out_);
  Running program(perdura_command(begin_or_continue()), log_);
  ASSERT_TRUE(test::wait_until([this] { return finished_points(log_).size() >= 3; }));
  program.kill();
  const std::size_t before = finished_points(log_).size();
  const Outcome outcome = mpirun(3, "run --continue " + out_.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_GE(before, 3U);
  expect_as_uninterrupted();
  EXPECT_EQ(Json::parse(read(out_ / "manifest.json"))["sessions"].size(), 2U);
}

TEST_F(ContinueTest, WhatCannotBeWrittenEndsTheRunWhichGoesOnWhenItCan) {
  const Outcome full = fail_to_write();
  EXPECT_EQ(full.code, 1) << full.text;
  const auto manifest = Json::parse(read(out_ / "manifest.json"));
  EXPECT_EQ(manifest["status"], "failed");
  const int done = manifest["points_done"].get<int>();
  EXPECT_GT(done, 0);
  EXPECT_LT(done, static_cast<int>(kPoints));
  EXPECT_EQ(full.text,
            fmt::format("perdura: {0}/journal: cannot be written: File too large; {1} of "
                        "12 points are in {0}; perdura run --continue {0}\n",
                        out_.string(), done));
  const Outcome outcome = perdura("run --continue " + out_.string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  expect_as_uninterrupted();
}

// The others find nothing wrong.
TEST_F(ContinueTest, WhatTheRootCannotWriteEndsAllRanks) {
  ASSERT_EQ(fail_to_write().code, 1);
  fs::remove(out_ / "points.csv");
  fs::create_directory(out_ / "points.csv");
  Running program(mpirun_command(2, "run --continue " + out_.string()), log_);
  ASSERT_TRUE(program.ranks_end_within(std::chrono::minutes(1))) << read(log_);
  EXPECT_NE(program.wait(), 0);
  const std::string text = read(log_);
  EXPECT_NE(text.find(fmt::format("perdura: {}/points.csv: cannot be written: Is a directory; ",
                                  out_.string())),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("; perdura run --continue " + out_.string() + "\n"), std::string::npos)
      << text;
  fs::remove(out_ / "points.csv");
  const Outcome outcome = perdura("run --continue " + out_.string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  expect_as_uninterrupted();
}

TEST_F(ContinueTest, AFolderThatIsMovedAwayEndsTheRun) {
  Running program(perdura_command(kSweep + "--set repetitions=999 --out " + out_.string()), log_);
  ASSERT_TRUE(test::wait_until([this] { return finished_points(log_).size() >= 3; }));
  fs::rename(out_, temporary_.path() / "moved");
  ASSERT_TRUE(program.ends_within(std::chrono::minutes(1)));
  EXPECT_EQ(program.wait(), 1);
  EXPECT_NE(read(log_).find("cannot be written: No such file or directory; " + out_.string() +
                            " is no longer there: run the experiment again in a new folder\n"),
            std::string::npos)
      << read(log_);
}

TEST_F(ContinueTest, ACompleteFolderSaysSo) {
  const std::string before = read(whole_ / "manifest.json");
  const Outcome outcome = perdura("run --continue " + whole_.string());
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text, whole_.string() + ": is complete\n");
  EXPECT_EQ(read(whole_ / "manifest.json"), before);
}

TEST_F(ContinueTest, ADamagedTableIsWrittenAnew) {
  fs::create_directory(out_);
  Running program(perdura_command(begin_or_continue()), log_);
  ASSERT_TRUE(test::wait_until([this] { return finished_points(log_).size() >= 3; }));
  program.kill();
  std::ofstream(out_ / "points.csv") << "nonsense\n";
  const Outcome outcome = perdura("run --continue " + out_.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("perdura: note: " + (out_ / "points.csv").string() +
                              ": is not what was written: it has 0 rows, 9 bytes, "),
            std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("; it is written anew from the points in the journal\n"),
            std::string::npos)
      << outcome.text;
  expect_as_uninterrupted();
}

// What is left of a table that was cut at a line's end is one, too.
TEST_F(ContinueTest, ACompleteFolderThatLostRowsIsRefusedByEveryReader) {
  const std::string points = read(whole_ / "points.csv");
  const std::string whole = whole_.string();
  fs::copy(whole_, out_, fs::copy_options::recursive);
  std::ofstream(whole_ / "points.csv")
      << points.substr(0, points.rfind('\n', points.size() - 2) + 1);
  for (const std::string& command :
       {"run --continue " + whole, "report " + whole, "claims " + whole,
        "compare " + whole + " " + out_.string(), "compare " + out_.string() + " " + whole}) {
    const Outcome outcome = perdura(command);
    EXPECT_EQ(outcome.code, 2) << command << '\n' << outcome.text;
    EXPECT_NE(outcome.text.find(whole + "/points.csv: is not what was written: it has "),
              std::string::npos)
        << command << '\n'
        << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  }
}

TEST_F(ContinueTest, AnotherConfigurationIsRefused) {
  kill_in_the_middle();
  fs::copy_file(whole_ / "experiment.toml", out_ / "experiment.toml",
                fs::copy_options::overwrite_existing);
  expect_refused("--continue " + out_.string() + ": begun with line ");
  expect_refused(" of experiment 'repetitions = 999', now it is '");
}

TEST_F(ContinueTest, RelativePathsAreThoseOfTheBeginning) {
  const fs::path folder = temporary_.path() / "folder";
  fs::create_directories(folder / "sub");
  fs::copy_file(fs::path(PERDURA_SOURCE_DIR) / "workloads/workloada", folder / "sub/workloada");
  const Outcome begun = shell(fmt::format(
      "cd {} && (trap '' XFSZ; ulimit -f 64; exec {} --quiet --out ../out)", folder.string(),
      perdura_command(kSweep + "--set 'matrix.workload=[\"sub/workloada\"]'")));
  ASSERT_EQ(begun.code, 1) << begun.text;
  for (const int ranks : {1, 2}) {
    fs::remove_all(temporary_.path() / "copy");
    fs::copy(out_, temporary_.path() / "copy", fs::copy_options::recursive);
    const Outcome outcome = mpirun(ranks, "run --quiet --continue " + out_.string());
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(read(out_ / "points.csv"), read(whole_ / "points.csv"));
    fs::remove_all(out_);
    fs::rename(temporary_.path() / "copy", out_);
  }
}

TEST_F(ContinueTest, AFolderWithoutAJournalIsRefused) {
  expect_refused("--continue " + out_.string() + ": there is no such folder");
  fs::create_directory(out_);
  expect_refused("--continue " + out_.string() + ": has no journal of an unfinished sweep");
}

TEST_F(ContinueTest, ADamagedJournalIsRefused) {
  kill_in_the_middle();
  std::string journal = read(out_ / "journal");
  journal[journal.size() / 2] = static_cast<char>(~journal[journal.size() / 2]);
  std::ofstream(out_ / "journal") << journal;
  expect_refused((out_ / "journal").string() + ": damaged at byte ");
}

TEST_F(ContinueTest, ADamagedJournalCanBeCutBackToWhatIsWhole) {
  fs::create_directory(out_);
  Running program(perdura_command(begin_or_continue()), log_);
  ASSERT_TRUE(test::wait_until([this] { return finished_points(log_).size() >= 3; }));
  program.kill();
  std::string journal = read(out_ / "journal");
  journal[journal.size() * 2 / 3] = static_cast<char>(~journal[journal.size() * 2 / 3]);
  std::ofstream(out_ / "journal") << journal;
  expect_refused("; restore the file, or add --cut-back to go on from the ");
  const Outcome outcome = perdura("run --cut-back --continue " + out_.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(
      outcome.text.find("perdura: note: " + (out_ / "journal").string() + ": damaged at byte "),
      std::string::npos)
      << outcome.text;
  EXPECT_EQ(read(out_ / "journal.damaged-1"), journal);
  fs::remove(out_ / "journal.damaged-1");
  expect_as_uninterrupted();
}

TEST_F(ContinueTest, OneProcessAtATimeWorksOnASweep) {
  kill_in_the_middle();
  const int journal = open((out_ / "journal").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(journal, LOCK_EX), 0);
  expect_refused("another process is at work on this sweep");
  close(journal);
}

TEST_F(ContinueTest, SettingsAreThoseOfTheFolder) {
  for (const std::string more : {"erda-latency", "--seed 3", "--out x", "--set seed=3"}) {
    const Outcome outcome = perdura("run --continue " + out_.string() + " " + more);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.text.find(" excludes "), std::string::npos) << outcome.text;
  }
}

}  // namespace
}  // namespace perdura
