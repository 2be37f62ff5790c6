// perdura run, probe, plan and claims: what they write, on any number of ranks, and what they refuse.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/schema/csv_table.h"
#include "platform/base/json.h"
#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

TEST(Cli, RunWritesTheFolderAndSaysWhere) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome = perdura(kTwoPoints + "--quiet --out " + folder.string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text, folder.string() + "\n");
  EXPECT_TRUE(fs::exists(folder / "points.csv"));
}

TEST(Cli, ProbesMeasureClaimsAndAreNotCompared) {
  const test::TemporaryFolder temporary;
  const std::string out = (temporary.path() / "out").string();
  for (const std::string name : {"probe", "probe-orion", "probe-translations"}) {
    const std::filesystem::path folder = std::filesystem::path(out) / name;
    std::filesystem::create_directories(folder);
    std::filesystem::copy(PERDURA_SOURCE_DIR "/results/reference/" + name + "/probes.csv",
                          folder / "probes.csv");
    std::ofstream(folder / "manifest.json") << "{}";
  }
  const Outcome claims = perdura("claims " + out);
  EXPECT_EQ(claims.code, 0) << claims.text;
  EXPECT_NE(claims.text.find("run erda-latency"), std::string::npos) << "not measured yet";
  EXPECT_EQ(claims.text.find("run probe"), std::string::npos) << claims.text;
  const Outcome compared = perdura(fmt::format("compare {} {}", out, out));
  EXPECT_EQ(compared.code, 2);
  EXPECT_TRUE(
      compared.text.starts_with(fmt::format("perdura: compare: {}: holds probes only; give", out)))
      << compared.text;
}

TEST(Cli, ClaimsAreMeasuredInTextAndJson) {
  const test::TemporaryFolder temporary;
  const std::string folder = (temporary.path() / "out").string();
  ASSERT_EQ(perdura(kTwoPoints + "--quiet --out " + folder).code, 0);
  const Outcome text = perdura("claims " + folder);
  EXPECT_EQ(text.code, 0) << text.text;
  for (const auto id : {"erda-16-erda ", "erda-14-erda ", "log-wsp-best "}) {
    EXPECT_NE(text.text.find(fmt::format("\n{}", id)), std::string::npos) << text.text;
  }
  EXPECT_NE(text.text.find("not measured"), std::string::npos);
  const auto last = text.text.rfind('\n', text.text.size() - 2);
  const std::string list = read(PERDURA_SOURCE_DIR "/results/claims.csv");
  const auto claims = std::count(list.begin(), list.end(), '\n') - 1;
  EXPECT_TRUE(text.text.substr(last).starts_with(fmt::format("\n{} claims: ", claims)))
      << text.text.substr(last);
  const Outcome json = perdura("claims --json " + folder);
  EXPECT_EQ(json.code, 0) << json.text;
  EXPECT_NE(json.text.find("\"id\": \"erda-16-erda\""), std::string::npos) << json.text;
  EXPECT_NE(json.text.find("\"explanation\": [\n        \"For updates"), std::string::npos)
      << "only one value size and system, and a reason if it differs: " << json.text;
}

TEST(Cli, RunShowsALinePerPoint) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome = perdura(kTwoPoints + "--out " + folder.string());
  EXPECT_NE(outcome.text.find("[1/2]"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("[2/2]"), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find('\r'), std::string::npos) << "no terminal, no rewriting";
}

TEST(Cli, TheSameRunGivesTheSameBytesOnAnyNumberOfRanks) {
  const test::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  ASSERT_EQ(perdura(kTwoPoints + "--out " + (folder / "one").string()).code, 0);
  ASSERT_EQ(perdura(kTwoPoints + "--out " + (folder / "again").string()).code, 0);
  const Outcome outcome = mpirun(3, kTwoPoints + "--out " + (folder / "three").string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  for (const auto file : {"points.csv", "histograms.csv", "experiment.toml"}) {
    EXPECT_EQ(read(folder / "one" / file), read(folder / "again" / file)) << file;
    EXPECT_EQ(read(folder / "one" / file), read(folder / "three" / file)) << file;
  }
}

// One small point, in real time.
const std::string kSmallShm =
    "run erda-shm --set repetitions=1 --set workload.operations=300 --set workload.warmup=0 "
    "--set 'matrix.workload=[\"workloada\"]' --set 'matrix.value_size=[64]' "
    "--set 'matrix.system=[\"erda\"]' ";

TEST(Cli, OnSharedMemoryOneProcessIsAllNodesAndRanksAreOneEach) {
  const test::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  const Outcome alone = perdura(kSmallShm + "--out " + (folder / "alone").string());
  EXPECT_EQ(alone.code, 0) << alone.text;
  const Outcome together =
      mpirun(3, kSmallShm + "--set workload.clients=2 --out " + (folder / "together").string());
  EXPECT_EQ(together.code, 0) << together.text;
  for (const auto out : {"alone", "together"}) {
    const auto manifest = Json::parse(read(folder / out / "manifest.json"));
    EXPECT_EQ(manifest["persistent_memory"]["directory"], "/dev/shm");
    EXPECT_EQ(manifest["persistent_memory"]["file_system"], "tmpfs");
    EXPECT_EQ(manifest["persistent_memory"]["dax"], "no");
    EXPECT_EQ(manifest["persistent_memory"]["promise"], "tmpfs; survives processes, not power");
    EXPECT_EQ(manifest["media_writes"]["not_available"], "the persistent memory is not on DAX");
    const std::string points = read(folder / out / "points.csv");
    EXPECT_NE(points.find(",shm,measured,host,erda,workloada,"), std::string::npos) << points;
    EXPECT_NE(points.find(",all,valid,,,none,300,0,0,"), std::string::npos) << points;
  }
}

// Each of them wants a core for itself.
TEST(Cli, APointWithMoreBusyThreadsThanCoresIsMarked) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const unsigned clients = 8 * std::max(1U, std::thread::hardware_concurrency());
  const Outcome outcome =
      perdura(kSmallShm + "--set 'workload.completion=\"polling\"' --set workload.operations=" +
              std::to_string(100 * clients) + " --set workload.clients=" + std::to_string(clients) +
              " --out " + folder.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find(", the host was crowded"), std::string::npos) << outcome.text;
  const auto points = schema::read_csv(folder / "points.csv");
  ASSERT_TRUE(points) << points.error().message;
  for (const schema::CsvRow& row : points->rows) {
    EXPECT_TRUE(row.cells[*points->column("noise")].starts_with("crowded"));
    EXPECT_GE(*schema::parse_number(row.cells[*points->column("waiting_threads")]), 0.5);
    EXPECT_GT(*schema::parse_number(row.cells[*points->column("runnable_per_core")]), 1);
    EXPECT_TRUE(schema::parse_number(row.cells[*points->column("load_average")]));
    EXPECT_TRUE(schema::parse_number(row.cells[*points->column("slowdown_percent")]));
  }
}

// The server on one rank and clients on two, of whom none has the whole course.
TEST(Cli, ACourseOverTimeIsThatOfAllRanks) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome =
      mpirun(3, kSmallShm + "--set workload.clients=2 --set timeline.interval_us=1000 --out " +
                    folder.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::ifstream input(folder / "timeline.csv");
  std::uint64_t operations = 0;
  std::size_t sampled = 0;
  std::string line;
  const auto cells_of = [](const std::string& text) {
    std::vector<std::string> cells;
    std::stringstream row(text);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    return cells;
  };
  std::getline(input, line);
  const auto header = cells_of(line);
  const auto column = [&header](std::string_view name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  while (std::getline(input, line)) {
    const auto cells = cells_of(line);
    ASSERT_GT(cells.size(), column("operations")) << line;
    operations += std::stoull(cells[column("operations")]);
    const std::size_t free = column("free_percent");
    if (cells.size() > free && !cells[free].empty()) ++sampled;
  }
  EXPECT_EQ(operations, 300U);
  EXPECT_GT(sampled, 0U);
}

TEST(Cli, ResponseTimesAreThoseOfAllRanks) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome =
      mpirun(3, kSmallShm +
                    "--set workload.clients=2 --set 'workload.load=\"poisson\"' "
                    "--set workload.offered_load=100000 --set workload.steady_slope=1.0 "
                    "--set workload.steady_window_ms=1 --set workload.warmup=100000 --out " +
                    folder.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::ifstream input(folder / "histograms.csv");
  std::uint64_t service = 0;
  std::uint64_t response = 0;
  std::string line;
  std::getline(input, line);
  while (std::getline(input, line)) {
    if (!line.starts_with("0,")) continue;
    const std::uint64_t count = std::stoull(line.substr(line.rfind(',') + 1));
    (line.starts_with("0,response,") ? response : service) += count;
  }
  EXPECT_EQ(service, 300U);
  EXPECT_EQ(response, 300U);
}

// A file system with servers in real time: the application is rank 0, each server another one.
const std::string kServedFiles =
    "run orion-names --platform shm --set repetitions=1 --set workload.operations=100 --set "
    "workload.warmup=10 "
    "--set 'workload.completion=\"event\"' --set workload.threads=2 --set workload.size=16777216 "
    "--set 'matrix.workload=[\"create\"]' --set 'matrix.system=[\"orion\"]' ";

TEST(Cli, TheServersOfAFileSystemAreRanks) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome = mpirun(3, kServedFiles + "--out " + folder.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto points = schema::read_csv(folder / "points.csv");
  ASSERT_TRUE(points) << points.error().message;
  ASSERT_FALSE(points->rows.empty());
  const auto cell = [&](std::string_view column) {
    return points->rows.front().cells[*points->column(column)];
  };
  EXPECT_EQ(cell("verdict"), "valid") << cell("reason");
  EXPECT_EQ(cell("operations"), "100");
  // The sessions count their RPCs, and the metadata server those that it was sent: create, hold and release.
  EXPECT_EQ(cell("rpcs_per_op"), "3");
  EXPECT_EQ(cell("mds_rpcs"), "300");
  EXPECT_GT(*schema::parse_number(cell("metadata_nvm_bytes_per_op")), 0);
}

TEST(Cli, ThreadsThatShareAWorkloadAreNotOnSeveralRanks) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome =
      mpirun(4, kServedFiles + "--set workload.application_nodes=2 --out " + folder.string());
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("lower application_nodes to 1, or leave out mpirun"),
            std::string::npos)
      << outcome.text;
}

TEST(Cli, AnImpossibleNumberOfRanksIsRefused) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome =
      mpirun(3, kSmallShm + "--set workload.client_nodes=1 --out " + folder.string());
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("a server and a client need 2 ranks, not 3; start mpirun -n 2"),
            std::string::npos)
      << outcome.text;
  EXPECT_FALSE(fs::exists(folder));
}

TEST(Cli, PlanTellsPointsAndTimesOnlyFromAPastRun) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "past";
  const std::string plan = "plan" + kTwoPoints.substr(kTwoPoints.find(' '));
  const auto planned = [&](const std::string& more) {
    const Outcome outcome = shell(fmt::format("cd {} && {} {} --json", temporary.path().string(),
                                              PERDURA_PROGRAM, plan + more));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return Json::parse(outcome.text);
  };
  const auto unknown = planned("");
  ASSERT_EQ(unknown["points"].size(), 2U);
  EXPECT_EQ(unknown["points"][1]["number"], 2);
  EXPECT_EQ(unknown["points"][1]["label"], "value_size=64 erda");
  EXPECT_EQ(unknown["points"][1]["operations"], 1300);
  EXPECT_TRUE(unknown["expected_s"].is_null());
  EXPECT_TRUE(unknown["points"][0]["expected_s"].is_null());

  ASSERT_EQ(perdura(kTwoPoints + "--out " + folder.string()).code, 0);
  const auto known = planned(" --like " + folder.string());
  EXPECT_GT(known["expected_s"].get<double>(), 0);
  EXPECT_EQ(known["points_not_run_there"], 0);

  fs::create_directory(temporary.path() / "out");
  fs::rename(folder, temporary.path() / "out" / "past");
  EXPECT_EQ(planned("")["expected_like"], "out/past");
}

TEST(Cli, PlanTellsTheRanksOfRealPlatforms) {
  const auto ranks = [](const std::string& more) {
    const Outcome outcome = perdura("plan erda-shm --json " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return Json::parse(outcome.text)["ranks"];
  };
  EXPECT_EQ(ranks("--set workload.client_nodes=3")["allowed"], Json({1, 4}));
  EXPECT_TRUE(ranks("")["allowed"].is_null());
  EXPECT_EQ(ranks("")["share_points"], false);
}

TEST(Cli, ASiteIsKeptWithTheResults) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  ASSERT_EQ(perdura(kTwoPoints + "--site example --out " + folder.string()).code, 0);
  EXPECT_EQ(read(folder / "site.toml"), read(fs::path(PERDURA_SOURCE_DIR) / "sites/example.toml"));
}

TEST(Cli, AHostfileNamesTheServerFirst) {
  const test::TemporaryFolder temporary;
  const fs::path site = temporary.path() / "lab.toml";
  const fs::path hosts = temporary.path() / "hosts";
  std::ofstream(site) << "name = \"lab\"\n[[host]]\nname = \"a\"\nrole = \"client\"\n"
                         "[[host]]\nname = \"b\"\nrole = \"server\"\n";
  const std::string plan = "plan erda-latency --hostfile " + hosts.string();
  const Outcome outcome = perdura(plan + " --site " + site.string());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(read(hosts), "b slots=1  # server\na slots=1  # client\n");

  const Outcome without = perdura(plan);
  EXPECT_EQ(without.code, 2);
  EXPECT_EQ(without.text, "perdura: a hostfile is made from a site: name one with --site\n");
}

TEST(Cli, CoresThatAreNotThereAreRefusedOnSharedMemory) {
  const test::TemporaryFolder temporary;
  const fs::path site = temporary.path() / "lab.toml";
  std::ofstream(site) << "name = \"lab\"\n[[host]]\nname = \"a\"\nrole = \"server\"\n"
                         "[[host]]\nname = \"b\"\nrole = \"client\"\ncores = [1023]\n";
  const Outcome outcome = perdura("run erda-shm --site " + site.string());
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_TRUE(outcome.text.starts_with(
      fmt::format("perdura: {}:8: host b: core 1023 does not exist", site.string())))
      << outcome.text;
}

// A login node has neither the cores nor the persistent memory of the hosts that the plan is for.
TEST(Cli, AHostfileIsMadeWhereTheSweepCannotRun) {
  const test::TemporaryFolder temporary;
  const fs::path site = temporary.path() / "lab.toml";
  const fs::path hosts = temporary.path() / "hosts";
  std::ofstream(site) << "name = \"lab\"\npm_directory = \"/no/such\"\n"
                         "[[host]]\nname = \"a\"\nrole = \"server\"\ncores = [1023]\n"
                         "numa_node = 99\n[[host]]\nname = \"b\"\nrole = \"client\"\n";
  for (const char* platform : {"shm", "verbs"}) {
    const std::string sweep =
        fmt::format("erda-shm --platform {} --site {}", platform, site.string());
    const Outcome planned = perdura(fmt::format("plan {} --hostfile {}", sweep, hosts.string()));
    const bool built = planned.text.find("without libibverbs") == std::string::npos;
    EXPECT_EQ(planned.code, built ? 0 : 2) << planned.text;
    EXPECT_EQ(read(hosts), "a slots=1  # server\nb slots=1  # client\n");
    EXPECT_EQ(perdura("run " + sweep).code, 2) << "what is missing is missed by a run alone";
  }
}

TEST(Cli, AnInterruptKeepsWhatIsDone) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  // Killed as soon as the first point is done; a shell's background jobs ignore ^C's signal.
  const Outcome outcome = shell(fmt::format(
      "({} {} --set repetitions=9999 --out {} > {}.log 2>&1 & job=$!; "
      "until grep -q '^.1/' {}.log; do sleep 0.05; done; kill -TERM $job; wait $job; code=$?; "
      "tail -n 1 {}.log; exit $code)",
      PERDURA_PROGRAM, kTwoPoints, folder.string(), folder.string(), folder.string(),
      folder.string()));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("perdura: interrupted; "), std::string::npos) << outcome.text;
  const std::string points = read(folder / "points.csv");
  EXPECT_GT(std::count(points.begin(), points.end(), '\n'), 1);
  EXPECT_NE(read(folder / "manifest.json").find("\"status\": \"interrupted\""), std::string::npos);
}

// Whoever reads an experiment checks its figures: before a sweep and after it, with the same words.
TEST(Cli, FiguresThatCannotBeDrawnAreRefusedBeforeTheSweepAndAfterIt) {
  const test::TemporaryFolder temporary;
  const fs::path whole = temporary.path() / "whole";
  ASSERT_EQ(perdura(kTwoPoints + "--out " + whole.string()).code, 0);
  const std::string text = read(whole / "experiment.toml");
  const fs::path file = temporary.path() / "x.toml";
  for (const auto& [from, to, message] :
       {std::tuple{"\ntitle = ", "\n# ", "needs title = \"...\""},
        std::tuple{"\ntitle = ", "\ntitel = ", "unknown key 'titel' (did you mean 'title'?)"},
        std::tuple{"\ntitle = ", "\ncolor = \"red\"\ntitle = ", "unknown key 'color'"},
        std::tuple{"plot = \"", "plot = \"no-", "there is no script "},
        std::tuple{"\nx = \"value_size\"", "\nx = \"workload\"", "takes numbers"},
        std::tuple{"\ny = \"", "\ny = \"no_", "points.csv has no column 'no_"}}) {
    std::string changed = text;
    const auto at = changed.find(from, changed.find("[[figure]]"));
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, std::string_view(from).size(), to);
    std::ofstream(file) << changed;
    std::ofstream(whole / "experiment.toml") << changed;
    const fs::path out = temporary.path() / "out";
    for (const std::string& command :
         {"plan " + file.string(), "run " + file.string() + " --out " + out.string(),
          "report " + whole.string()}) {
      const Outcome outcome = perdura(command);
      EXPECT_EQ(outcome.code, 2) << command << '\n' << outcome.text;
      EXPECT_NE(outcome.text.find(message), std::string::npos) << command << '\n' << outcome.text;
      EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
    }
    EXPECT_FALSE(fs::exists(out));
  }
}

TEST(Cli, ResultsAreNeverOverwritten) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  ASSERT_EQ(perdura(kTwoPoints + "--out " + folder.string()).code, 0);
  const Outcome outcome = perdura(kTwoPoints + "--out " + folder.string());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text, fmt::format("perdura: --out {}: the folder is not empty; give a new one, "
                                      "results are never overwritten\n",
                                      folder.string()));
}

}  // namespace
}  // namespace perdura
