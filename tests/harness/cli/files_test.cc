// Files that are not what they should be, and what is said of them.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

const std::string kMark = "\xEF\xBB\xBF";

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

class Files : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    const fs::path file = temporary_.path() / name;
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  static std::string source(const std::string& file) {
    return read(fs::path(PERDURA_SOURCE_DIR) / file);
  }
  static std::string plan_of(const std::string& workload) {
    return fmt::format("plan erda-latency --set 'matrix.workload=[\"{}\"]'", workload);
  }

  const test::TemporaryFolder temporary_;
};

// A figure that would be empty after the whole sweep is refused before it.
TEST_F(Files, MayNotNameSystemsThatThereAreNot) {
  const std::string start =
      "name = \"a\"\nplatform = \"sim\"\nprofile = \"erda-connectx3\"\n"
      "[workload]\nrecords = 50\noperations = 100\n[matrix]\nworkload = [\"workloadc\"]\n"
      "system = [\"mine\"]\nvalue_size = [16, 64]\n[systems.mine]\nvariant_of = \"erda\"\n"
      "[[figure]]\nid = \"f\"\ntitle = \"t\"\nplot = \"latency-over-value-size\"\n"
      "x = \"value_size\"\ny = \"latency_mean_us\"\n";
  const auto plan_with = [&](const std::string& line) {
    return perdura("plan " + write("figure.toml", start + line + "\n"));
  };
  for (const char* line : {"normalize = { system = \"edra\" }",
                           "where = { system = [\"erda\", \"edra\"] }", "baseline = \"edra\""}) {
    const Outcome refused = plan_with(line);
    EXPECT_EQ(refused.code, 2) << line;
    const std::string key(line, std::string_view(line).find(' '));
    EXPECT_NE(
        refused.text.find(fmt::format(
            "figure.toml:13: figure f: {}: unknown system 'edra' (did you mean 'erda'?)", key)),
        std::string::npos)
        << refused.text;
  }
  for (const char* line : {"normalize = { system = \"mine\" }", "baseline = \"redo-logging\""}) {
    const Outcome accepted = plan_with(line);
    EXPECT_EQ(accepted.code, 0) << accepted.text;
  }
}

// A page of the user's own is not replaced by a report, wherever that would go.
TEST_F(Files, AreNoReportsBecauseTheyAreNamedLikeOne) {
  const fs::path folder = temporary_.path() / "results";
  fs::create_directories(folder / "report");
  const std::string page = write("results/report/index.html", "mine");
  const std::string beside = (folder / "report").string();
  for (const auto& [arguments, beginning] :
       {std::pair{folder.string(), "perdura: report: " + beside},
        std::pair{folder.string() + " --out " + beside, "perdura: report: --out " + beside}}) {
    const Outcome refused = perdura("report " + arguments);
    EXPECT_EQ(refused.code, 2);
    EXPECT_TRUE(refused.text.starts_with(beginning + ": is not empty, and holds no report; "))
        << refused.text;
    EXPECT_EQ(read(page), "mine");
  }
}

TEST_F(Files, AreNotLookedUpBesideAHomeThatThereIsNot) {
  const std::string file = write("file", "");
  for (const auto& [home, why] : {std::pair{std::string("/nowhere"), "there is no such folder"},
                                  std::pair{file, "is a file, not a folder"}}) {
    const Outcome outcome =
        shell(fmt::format("PERDURA_HOME={} {}", home, perdura_command("plan erda-latency")));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.text, fmt::format("perdura: PERDURA_HOME={}: {}; correct the variable, or "
                                        "unset it\n",
                                        home, why));
  }
}

TEST_F(Files, MayBeginWithAByteOrderMark) {
  const std::string experiment =
      write("marked.toml", kMark + source("experiments/erda-latency.toml"));
  const Outcome plan = perdura("plan " + experiment + " --set seed=3 --set shm.write_latency_ns=5");
  EXPECT_EQ(plan.code, 0) << plan.text;
  const Outcome workload = perdura(plan_of(write("marked", kMark + source("workloads/workloada"))));
  EXPECT_EQ(workload.code, 0) << workload.text;
  const Outcome profile =
      perdura("plan erda-latency --profile " +
              write("profile.toml", kMark + source("profiles/erda-connectx3.toml")));
  EXPECT_EQ(profile.code, 0) << profile.text;
}

// Of a binary file nothing reaches the terminal that it would obey, and no more than a line.
TEST_F(Files, ThatAreBinaryAreToldOfInPrintableText) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>((i * 7919) % 256);
  bytes += "\x1b[31m\x9b";
  const std::string toml = write("binary.toml", bytes);
  const std::string plain = write("binary", "\x1b]0;title\x07" + bytes);
  for (const std::string& arguments :
       {"plan " + toml, "plan erda-latency --site " + toml, "plan erda-latency --profile " + toml,
        plan_of(plain), "crash " + plain}) {
    const Outcome outcome = perdura(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(count(outcome.text, "\n"), 1U) << arguments;
    EXPECT_LT(outcome.text.size(), 2000U) << arguments;
    const bool printable = std::all_of(outcome.text.begin(), outcome.text.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte == '\n' || (byte >= 0x20 && byte != 0x7f);
    });
    EXPECT_TRUE(printable) << arguments;
    EXPECT_TRUE(outcome.text.starts_with("perdura: ")) << arguments;
  }
}

TEST_F(Files, AreNamedOnceBesideTheOptionThatGaveThem) {
  const std::string workload = write("odd", "readproportion=x\n");
  const Outcome outcome = perdura(plan_of(workload));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(count(outcome.text, workload), 2U) << outcome.text;
  EXPECT_NE(outcome.text.find(workload + ":1: "), std::string::npos) << outcome.text;
}

TEST_F(Files, ThatAreFoldersAreCalledSo) {
  const std::string folder = temporary_.path().string();
  const Outcome experiment = perdura("plan " + folder);
  EXPECT_EQ(experiment.text,
            fmt::format("perdura: experiment {}: is a folder; give a file\n", folder));
  const Outcome workload = perdura(plan_of(folder));
  EXPECT_NE(workload.text.find(fmt::format("workload {}: is a folder", folder)), std::string::npos)
      << workload.text;
  const std::string file = write("file", "");
  for (const std::string command : {"report", "claims"}) {
    const Outcome outcome = perdura(fmt::format("{} {}", command, file));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.text, fmt::format("perdura: {} {}: is a file, not a folder; give one that "
                                        "'perdura run' wrote\n",
                                        command, file));
  }
}

// A plan looks for the times of past runs in out/.
TEST_F(Files, AtThePlaceOfPastRunsAreCalledSo) {
  write("out", "");
  const Outcome outcome = shell(
      fmt::format("cd {} && {} plan erda-latency", temporary_.path().string(), PERDURA_PROGRAM));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text,
            "perdura: out: is a file, not a folder; past runs are looked for there: move it away, "
            "or name a run with --like DIR\n");
}

// What is wrong with a value is said with the value's own line.
TEST_F(Files, NameTheLineOfTheValue) {
  const std::string sweep = source("experiments/erda-latency.toml");
  const auto lines = static_cast<std::size_t>(std::count(sweep.begin(), sweep.end(), '\n'));
  struct Wrong {
    std::string appended;
    std::size_t line;  // of those
    std::string said;
  };
  const Wrong all[] = {
      {"[systems.erda]\nheads = 2\nneighborhood = 99\n", 3,
       "neighborhood in [systems.erda] must be a whole number from 0 to 32"},
      {"[systems.redo-logging]\nlog_slot = 7\n", 2,
       "unknown key 'log_slot' in [systems.redo-logging] (did you mean 'log_slots'?)"},
      {"[systems.erda]\n# none\nregions = 99999999999\n", 3,
       "regions in [systems.erda] must be a whole number"},
      {"[timeline]\n\ninterval_us = 1\n", 3, "interval_us in [timeline] must be a whole number"},
      {"[shm]\nnetwork_latency_ns = inf\n", 2,
       "network_latency_ns in [shm] must be a whole number"},
      {"[shm]\nwrite_latency_ns = 1e308\n", 2, "write_latency_ns in [shm] must be a whole number"},
  };
  for (const Wrong& wrong : all) {
    const std::string file = write("wrong.toml", sweep + wrong.appended);
    const Outcome outcome = perdura("plan " + file);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(outcome.text.starts_with(
        fmt::format("perdura: {}:{}: {}", file, lines + wrong.line, wrong.said)))
        << outcome.text;
  }
}

}  // namespace
}  // namespace perdura
