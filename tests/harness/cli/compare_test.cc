// perdura compare as a process: its exit codes, which are what watches a program's speed.
#include <algorithm>

#include "harness/schema/file_record.h"
#include "platform/base/json.h"
#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

// Rows that were changed on purpose are as they were written.
void record_points(const fs::path& folder) {
  const auto record = schema::record_of_file(folder / "points.csv");
  ASSERT_TRUE(record);
  auto manifest = Json::parse(read(folder / "manifest.json"));
  manifest["files"]["points.csv"] = {
      {"rows", record->rows}, {"bytes", record->bytes}, {"crc32", record->crc32}};
  std::ofstream(folder / "manifest.json") << manifest.dump();
}

// A copy of a result folder whose latencies are some percent higher; if `repetitions`, measured,
// with so many repetitions that differ by a few thousandths.
void copy_slower(const fs::path& from, const fs::path& to, double percent, int repetitions = 0) {
  fs::copy(from, to, fs::copy_options::recursive);
  std::ifstream input(from / "points.csv");
  std::string line;
  std::getline(input, line);
  std::ofstream output(to / "points.csv");
  output << line << '\n';
  const auto split = [](const std::string& text) {
    std::vector<std::string> cells;
    std::stringstream row(text + ',');
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    return cells;
  };
  const std::vector<std::string> header = split(line);
  while (std::getline(input, line)) {
    for (int repetition = 0; repetition < std::max(1, repetitions); ++repetition) {
      std::vector<std::string> cells = split(line);
      const double factor = (1 + percent / 100) * (1 + 0.001 * repetition);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string& name = header[i];
        if (name.starts_with("latency_") && !cells[i].empty()) {
          cells[i] = fmt::format("{}", std::stod(cells[i]) * factor);
        }
        if (repetitions == 0) continue;
        if (name == "platform") cells[i] = "shm";
        if (name == "provenance") cells[i] = "measured";
        if (name == "repetition") cells[i] = std::to_string(repetition);
      }
      output << fmt::format("{}\n", fmt::join(cells, ","));
    }
  }
  output.close();
  record_points(to);
}

TEST(CompareCommand, SaysByItsExitCodeWhetherAnythingGotWorse) {
  const test::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  ASSERT_EQ(perdura(kTwoPoints + "--out " + (folder / "a").string()).code, 0);
  copy_slower(folder / "a", folder / "slower", 5);
  const auto compare = [&](const std::string& a, const std::string& b,
                           const std::string& more = "") {
    return perdura(
        fmt::format("compare {} {} {}", (folder / a).string(), (folder / b).string(), more));
  };
  const Outcome same = compare("a", "a");
  EXPECT_EQ(same.code, 0) << same.text;
  EXPECT_NE(same.text.find("0 worse, 0 better by more than 2 %"), std::string::npos) << same.text;
  EXPECT_NE(same.text.find("compared by the threshold alone"), std::string::npos) << same.text;
  const Outcome slower = compare("a", "slower", "--out " + (folder / "figure").string());
  EXPECT_EQ(slower.code, 1) << slower.text;
  EXPECT_NE(slower.text.find("+5.0 %"), std::string::npos) << slower.text;
  for (const auto file : {"comparison.csv", "comparison.svg", "comparison.png"}) {
    EXPECT_TRUE(fs::exists(folder / "figure" / file)) << file;
  }
  const Outcome no_gnuplot = compare("a", "a", "--gnuplot nope --out " + (folder / "f").string());
  EXPECT_EQ(no_gnuplot.code, 2) << no_gnuplot.text;
  EXPECT_NE(no_gnuplot.text.find("perdura: compare: nope: cannot be started"), std::string::npos)
      << no_gnuplot.text;
  EXPECT_EQ(compare("slower", "a").code, 0) << "faster is not worse";
  EXPECT_EQ(compare("a", "slower", "--threshold 6").code, 0);
  EXPECT_EQ(compare("a", "slower", "--quantity throughput_ops_s").code, 0);
  const Outcome json = compare("a", "slower", "--json --quantity latency_p50_us");
  EXPECT_EQ(json.code, 1) << json.text;
  EXPECT_TRUE(json.text.starts_with("{\n")) << json.text;
  const Outcome mistyped = compare("a", "a", "--quantity throughput_op_s");
  EXPECT_EQ(mistyped.code, 2) << mistyped.text;
  EXPECT_TRUE(mistyped.text.starts_with(
      "perdura: compare: unknown quantity 'throughput_op_s' (did you mean 'throughput_ops_s'?)"))
      << mistyped.text;
  const Outcome unknown = compare("a", "a", "--quantity speed");
  EXPECT_EQ(unknown.code, 2) << unknown.text;
  EXPECT_TRUE(unknown.text.starts_with("perdura: compare: unknown quantity 'speed'; known are: "))
      << unknown.text;
}

// What a run that watches for changes for the worse must not overlook.
TEST(CompareCommand, FailsIfPointsFailOrVanish) {
  const test::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  ASSERT_EQ(perdura(kTwoPoints + "--out " + (folder / "a").string()).code, 0);
  const std::string points = read(folder / "a" / "points.csv");
  const auto changed = [&](const std::string& name, const auto& change) {
    fs::copy(folder / "a", folder / name, fs::copy_options::recursive);
    std::stringstream input(points);
    std::ofstream output(folder / name / "points.csv");
    std::string line;
    std::getline(input, line);
    output << line << '\n';
    while (std::getline(input, line)) output << change(line);
    output.close();
    record_points(folder / name);
  };
  const auto of_64 = [](const std::string& line) { return line.find(",64,") != std::string::npos; };
  changed("fewer", [&](const std::string& line) { return of_64(line) ? "" : line + '\n'; });
  changed("failed", [&](std::string line) {
    const auto verdict = line.find(",valid,");
    if (of_64(line)) line.replace(verdict, 7, ",failed,");
    return line + '\n';
  });
  changed("none", [](const std::string&) { return ""; });
  const auto compare = [&](const std::string& a, const std::string& b) {
    return perdura(fmt::format("compare {} {}", (folder / a).string(), (folder / b).string()));
  };
  for (const std::string b : {"fewer", "failed", "none"}) {
    const Outcome lost = compare("a", b);
    EXPECT_EQ(lost.code, 1) << lost.text;
    EXPECT_NE(lost.text.find("\nlost: "), std::string::npos) << lost.text;
    EXPECT_NE(lost.text.find("lost in B, such as erda"), std::string::npos) << lost.text;
  }
  EXPECT_EQ(compare("a", "fewer --ignore-missing").code, 0);
  EXPECT_EQ(compare("a", "failed --ignore-missing").code, 1);
  EXPECT_EQ(compare("a", "none --ignore-missing").code, 2);
  const Outcome more = compare("fewer", "a");
  EXPECT_EQ(more.code, 0) << more.text;
  EXPECT_NE(more.text.find("only in B: "), std::string::npos) << more.text;
}

TEST(CompareCommand, NeedsEnoughRepetitionsOfWhatWasMeasured) {
  const test::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  ASSERT_EQ(perdura(kTwoPoints + "--out " + (folder / "sim").string()).code, 0);
  for (const int repetitions : {3, 12}) {
    copy_slower(folder / "sim", folder / fmt::format("a{}", repetitions), 0, repetitions);
    copy_slower(folder / "sim", folder / fmt::format("b{}", repetitions), 5, repetitions);
  }
  const auto compare = [&](const std::string& a, const std::string& b) {
    return perdura(fmt::format("compare {} {} --quantity latency_p50_us --json",
                               (folder / a).string(), (folder / b).string()));
  };
  EXPECT_EQ(compare("a12", "a12").code, 0);
  EXPECT_EQ(compare("a12", "b12").code, 1);
  EXPECT_EQ(compare("b12", "a12").code, 0);
  const Outcome few = compare("a3", "b3");
  EXPECT_EQ(few.code, 2) << few.text;
  EXPECT_NE(few.text.find("no comparison can be decided: with 3 repetitions on each side, no "
                          "difference is significant"),
            std::string::npos)
      << few.text;
  const Outcome mixed = compare("sim", "a12");
  EXPECT_EQ(mixed.code, 2) << mixed.text;
  EXPECT_EQ(std::count(mixed.text.begin(), mixed.text.end(), '\n'), 1) << mixed.text;
}

// The gnuplot that draws the first image sends the signal, so that it comes while there is work.
TEST(CompareCommand, EndsCleanlyWhenItIsInterrupted) {
  const test::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  ASSERT_EQ(perdura(kTwoPoints + "--out " + (folder / "a").string()).code, 0);
  const fs::path script = folder / "gnuplot";
  std::ofstream(script) << "#!/bin/sh\n[ \"$5\" != svg ] || kill -INT $PPID\necho an image\n";
  fs::permissions(script, fs::perms::owner_all);
  const Outcome outcome =
      perdura(fmt::format("compare {0} {0} --out {1} --gnuplot {2}", (folder / "a").string(),
                          (folder / "f").string(), script.string()));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("interrupted: stopping; press ^C again"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("perdura: interrupted\n"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace perdura
