// Histories that runs record and check, and perdura history, which checks one again.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

TEST(CliHistory, RunChecksTheHistoryIfAskedAndMeasuresTheSame) {
  const test::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  ASSERT_EQ(perdura(kTwoPoints + "--out " + (folder / "without").string()).code, 0);
  const Outcome outcome =
      perdura(kTwoPoints + "--set workload.check_history=true --out " + (folder / "with").string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find(", 1300 operations linearizable"), std::string::npos) << outcome.text;
  for (const auto file : {"points.csv", "histograms.csv"}) {
    EXPECT_EQ(read(folder / "without" / file), read(folder / "with" / file)) << file;
  }
}

TEST(CliHistory, HistoriesAreKeptAndCheckedAgain) {
  const test::TemporaryFolder temporary;
  const fs::path histories = temporary.path() / "kept" / "histories";
  const Outcome run =
      perdura(kTwoPoints + "--set workload.check_history=true --set 'workload.history_folder=\"" +
              histories.string() + "\"' --out " + (temporary.path() / "out").string());
  ASSERT_EQ(run.code, 0) << run.text;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(histories)) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 2U);

  const fs::path edn = temporary.path() / "one.edn";
  const Outcome again = perdura("history " + files[0].string() + " --edn " + edn.string());
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_NE(again.text.find("1300 operations"), std::string::npos) << again.text;
  EXPECT_NE(again.text.find("linearizable"), std::string::npos) << again.text;
  const std::string events = read(edn);
  EXPECT_EQ(std::count(events.begin(), events.end(), '\n'), 2 * 1300);

  // A get that returns what nobody has put.
  std::string wrong = read(files[0]);
  const std::string_view answer = R"("Output":{"outcome":"ok","value":)";
  wrong.insert(wrong.find(answer) + answer.size(), "9");
  const fs::path file = temporary.path() / "wrong.json";
  std::ofstream(file) << wrong;
  const Outcome refused = perdura("history " + file.string());
  EXPECT_EQ(refused.code, 1) << refused.text;

  std::ofstream(file) << wrong.substr(0, wrong.size() / 2);
  const Outcome damaged = perdura("history " + file.string());
  EXPECT_EQ(damaged.code, 2) << damaged.text;
  EXPECT_NE(damaged.text.find("perdura: history: " + file.string() + ": "), std::string::npos)
      << damaged.text;
  EXPECT_EQ(perdura("history " + (temporary.path() / "none.json").string()).code, 2);
}

TEST(CliHistory, ProcessesOnSharedMemoryAreCheckedTogether) {
  const test::TemporaryFolder temporary;
  const Outcome outcome =
      mpirun(3,
             "run erda-shm --set repetitions=1 --set 'matrix.workload=[\"workloada\"]' "
             "--set 'matrix.value_size=[64]' --set workload.records=20 --set workload.clients=2 "
             "--set workload.operations=600 --set workload.warmup=100 "
             "--set workload.check_history=true --out " +
                 (temporary.path() / "out").string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  // Each point has the operations of both client processes.
  std::size_t points = 0;
  const std::string_view checked = ", 720 operations linearizable";
  for (auto at = outcome.text.find(checked); at != std::string::npos;
       at = outcome.text.find(checked, at + 1)) {
    ++points;
  }
  EXPECT_EQ(points, 3U) << outcome.text;
}

}  // namespace
}  // namespace perdura
