// The program itself: what it writes, and its exit codes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "harness/schema/csv_table.h"
#include "platform/base/json.h"
#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"
#include "tests/support/machine_tree.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

// Either answer would be taken for the other one.
TEST(Cli, ANameThatIsBuiltInAndAFileIsRefused) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path().string();
  for (const char* name : {"write-flush", "erda"}) {
    std::ofstream(temporary.path() / name) << "requester: write a; completion\n";
  }
  fs::create_directory(temporary.path() / "level");
  const auto crash = [&](const std::string& target) {
    return shell(fmt::format(
        "cd {} && {}", folder,
        perdura_command("crash " + target + " --domain mhp --ddio off --transport ib --images 1")));
  };
  const Outcome method = crash("write-flush");
  EXPECT_EQ(method.code, 2);
  EXPECT_EQ(method.text,
            "perdura: crash: 'write-flush' is a built-in method, and a file here has this name, "
            "too; write ./write-flush for the file, or rename it to explore the method\n");
  const Outcome system = crash("erda");
  EXPECT_EQ(system.code, 2);
  EXPECT_TRUE(system.text.starts_with("perdura: crash: 'erda' is a built-in system, and a file "))
      << system.text;
  const Outcome file = crash("./write-flush");
  EXPECT_EQ(file.code, 1);
  EXPECT_TRUE(file.text.starts_with("write-flush on mhp no-ddio dram: torn, lost ")) << file.text;
  // A folder is no method.
  EXPECT_EQ(crash("level").code, 0);
}

TEST(Cli, AMethodIsPrintedAsAFileThatCanBeExplored) {
  const test::TemporaryFolder temporary;
  const std::string file = (temporary.path() / "mine").string();
  const std::string on = " --domain dmp --ddio off --receive-buffers dram --transport ib";
  ASSERT_EQ(shell(perdura_command("list methods link-and-persist-flush") + " > " + file).code, 0);
  const Outcome own = perdura("crash " + file + on + " --steps");
  EXPECT_EQ(own.code, 0) << own.text;
  EXPECT_EQ(own.text, perdura("crash link-and-persist-flush" + on + " --steps").text);
  // The steps that are printed elsewhere are those of the file, with the values of the link.
  EXPECT_NE(own.text.find("  without requester 2 cas b=1 "), std::string::npos) << own.text;
  EXPECT_NE(read(file).find("requester 2: await b=1; cas b=1; flush"), std::string::npos);
  const std::string advice =
      perdura("advise --domain dmp --ddio on --transport ib --update publish --flush-persistence")
          .text;
  EXPECT_NE(advice.find("  requester 2  await b "), std::string::npos) << advice;
  EXPECT_NE(advice.find("\n  perdura list methods publish-cas-persist prints it as a file"),
            std::string::npos)
      << advice;
  EXPECT_EQ(perdura("list experiments erda-latency").text,
            read(PERDURA_SOURCE_DIR "/experiments/erda-latency.toml"));
}

TEST(Cli, ALossNamesTheCommandThatNamesWhatLosesNothing) {
  const Outcome loss = perdura("crash write --domain mhp --ddio off --receive-buffers pm");
  ASSERT_EQ(loss.code, 1);
  const std::string advice =
      "\nperdura advise --domain mhp --ddio off --receive-buffers pm "
      "--transport ib names methods that are right there\n";
  EXPECT_TRUE(loss.text.ends_with(advice)) << loss.text;
}

TEST(Cli, HelpAndVersionAreNoMistakes) {
  EXPECT_EQ(perdura("--help").code, 0);
  EXPECT_EQ(perdura("run --help").code, 0);
  const Outcome version = perdura("--version");
  EXPECT_EQ(version.code, 0);
  std::istringstream words(version.text);
  std::string perdura, number, revision, name;
  words >> perdura >> number >> revision >> name;
  EXPECT_EQ(perdura, "perdura");
  EXPECT_EQ(revision, "(revision") << version.text;
  EXPECT_GE(name.size(), 8U) << "unknown, or 12 digits: " << version.text;
}

// An explanation names the run that could refute it: whoever gives the command must not be refused.
TEST(Cli, RunsThatCouldRefuteAnExplanationCanBeGiven) {
  std::size_t planned = 0;
  for (const auto& file : fs::directory_iterator(PERDURA_SOURCE_DIR "/results/reported")) {
    std::istringstream notes(read(file.path()));
    for (std::string line; std::getline(notes, line);) {
      if (!line.starts_with("run = ")) continue;
      const std::string start = "perdura run ";
      const auto from = line.find(start);
      if (from == std::string::npos) continue;  // a probe
      const std::string opening = line.substr(6, from - 6);
      std::string command = line.substr(from + start.size());
      command.resize(command.rfind(opening));
      for (const auto& [word, instead] :
           {std::pair<std::string, std::string>{"--profile COPY", "--profile erda-connectx3"},
            {"--platform verbs", "--platform shm"}}) {
        if (const auto at = command.find(word); at != std::string::npos) {
          command.replace(at, word.size(), instead);
        }
      }
      const Outcome outcome = perdura("plan " + command);
      EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.text;
      ++planned;
    }
  }
  EXPECT_GT(planned, 10U);
}

TEST(Cli, ListNamesWhatThereIs) {
  const Outcome outcome = perdura("list");
  EXPECT_EQ(outcome.code, 0);
  for (const auto name : {"erda", "guarantee: ", "erda-latency", "erda-connectx3", "workloada"}) {
    EXPECT_NE(outcome.text.find(name), std::string::npos) << name;
  }
}

TEST(Cli, ListsOneKindByNameAndAllAsJson) {
  EXPECT_EQ(perdura("list sites").text, "example\n");
  const Outcome outcome = perdura("list --json");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto json = Json::parse(outcome.text);
  for (const std::string kind :
       {"systems", "methods", "experiments", "profiles", "workloads", "sites"}) {
    std::string names;
    for (const auto& each : json[kind]) names += each["name"].get<std::string>() + '\n';
    EXPECT_EQ(perdura("list " + kind).text, names) << kind;
  }
  EXPECT_TRUE(fs::exists(json["profiles"][0]["file"].get<std::string>()));
}

TEST(Cli, ReportsNameTheirFilesAsJson) {
  const test::TemporaryFolder temporary;
  const std::string folder = (temporary.path() / "out").string();
  ASSERT_EQ(perdura(kTwoPoints + "--quiet --out " + folder).code, 0);
  // Notes on stderr say which figures have no rows, as those of the workloads left out here.
  const Outcome outcome =
      shell(fmt::format("({} report --json {} 2>/dev/null)", PERDURA_PROGRAM, folder));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto json = Json::parse(outcome.text);
  EXPECT_EQ(json["page"], folder + "/report/index.html");
  EXPECT_EQ(json["rows_not_drawn"], 0);
  for (const auto& file : json["files"]) EXPECT_TRUE(fs::exists(file.get<std::string>())) << file;
  const Outcome text = perdura("report " + folder);
  EXPECT_NE(text.text.find(fmt::format("{} figure", json["figures"].get<int>())), std::string::npos)
      << text.text;
  EXPECT_EQ(text.text.find("not valid"), std::string::npos) << text.text;
}

TEST(Cli, AdviseSaysHowItKnowsWhatInTextAndJson) {
  const std::string arguments = "advise --domain dmp --ddio off --no-flush --flush-persistence";
  const Outcome text = perdura(arguments);
  EXPECT_EQ(text.code, 0);
  const Outcome json = perdura(arguments + " --json");
  EXPECT_EQ(json.code, 0);
  for (const auto name : {"domain", "ddio", "receive-buffers", "transport", "flush",
                          "flush-persistence", "atomic-write", "device-dax", "file-system-dax"}) {
    EXPECT_NE(("\n" + text.text).find(fmt::format("\n{:<17} ", name)), std::string::npos) << name;
    EXPECT_NE(json.text.find(fmt::format("\"name\": \"{}\"", name)), std::string::npos) << name;
  }
  for (const auto line :
       {"domain            dmp      given\n", "flush             no       given\n",
        "flush-persistence yes      given\n"}) {
    EXPECT_NE(text.text.find(line), std::string::npos) << line;
  }
}

// What is said of the devices holds, whatever this machine has.
TEST(Cli, AdviseMindsWhatTheDevicesHave) {
  const auto offered = [](const std::string& arguments) {
    const std::string text = perdura("advise --domain dmp --ddio off " + arguments).text;
    return text.substr(0, text.find("\nnot suitable here"));
  };
  for (const bool has : {false, true}) {
    const std::string no = has ? "" : "no-";
    EXPECT_EQ(offered(fmt::format("--update ordered --{}atomic-write", no)).find("-atomic,") !=
                  std::string::npos,
              has);
    EXPECT_EQ(offered(fmt::format("--{}flush-persistence", no)).find("\n  write-persist ") !=
                  std::string::npos,
              has);
    const std::string first = offered(fmt::format("--{}flush", no));
    EXPECT_EQ(first.find("\n  requester  flush ") != std::string::npos, has) << first;
    EXPECT_EQ(first.find("\n  requester  read ") != std::string::npos, !has) << first;
  }
}

// A point that the machine has no memory for is refused before it is started, by both in one line.
TEST(Cli, MemoryIsPlannedAndWhatIsNotThereIsRefused) {
  const auto plan = Json::parse(perdura("plan erda-latency --json").text);
  EXPECT_GT(plan["memory_available_bytes"].get<std::uint64_t>(), 0U);
  for (const auto& point : plan["points"])
    EXPECT_GT(point["memory_bytes"].get<std::uint64_t>(), 1U << 20);
  EXPECT_NE(perdura("plan erda-latency").text.find("\nmemory    about "), std::string::npos);

  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const std::string far_too_much =
      " erda-latency --set workload.clients=60000 --set workload.server_threads=1024 ";
  for (const std::string& command :
       {"plan" + far_too_much, "run" + far_too_much + "--out " + folder.string()}) {
    const Outcome outcome = perdura(command);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(" of memory, and "), std::string::npos) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  }
  EXPECT_FALSE(fs::exists(folder));
}

// However long a name is, what is said of it stands apart.
TEST(Cli, ColumnsDoNotRunTogether) {
  const std::string advice = perdura("advise --domain dmp --ddio off --update ordered").text;
  EXPECT_NE(advice.find("\n  ordered-write-persist-wait  a device lacks"), std::string::npos)
      << advice;
  EXPECT_NE(perdura("list").text.find("\n  ordered-write-persist-wait  ordered write\n"),
            std::string::npos);
}

TEST(Cli, AdviseOffersFirstWhatHasNoStepTooMany) {
  for (const char* server : {"--domain mhp", "--domain wsp --transport iwarp"}) {
    const std::string text =
        perdura(fmt::format("advise {} --update ordered --operation write --flush --atomic-write",
                            server))
            .text;
    EXPECT_NE(text.find("\nordered-write-flush, "), std::string::npos) << text;
    EXPECT_EQ(text.substr(0, text.find("\nalso right")).find("not needed"), std::string::npos)
        << text;
    EXPECT_NE(text.find("times may be 10 % off"), std::string::npos) << text;
  }
}

// Of a machine that is not here, carried as a file.
TEST(Cli, AdviseTakesWhatADoctorFoundElsewhere) {
  test::MachineTree machine;
  machine.put("sys/bus/nd/devices/region0/persistence_domain", "cpu_cache");
  machine.put("proc/sys/kernel/hostname", "node7");
  machine.put_rdma_device("mlx5_0", true, false);
  const std::string root = machine.root().string();
  const Outcome text = perdura("doctor --root " + root);
  EXPECT_EQ(text.code, 0) << text.text;
  EXPECT_NE(text.text.find("\n  perdura advise --domain mhp --ddio off --transport ib\n"),
            std::string::npos)
      << text.text;
  const Outcome json =
      shell(perdura_command(fmt::format("doctor --root {0} --json > {0}/me.json", root)));
  EXPECT_EQ(json.code, 0) << json.text;
  const Outcome advice = perdura(fmt::format("advise --responder {}/me.json", root));
  EXPECT_EQ(advice.code, 0) << advice.text;
  for (const auto line : {"domain            mhp      region0 says cpu_cache\n",
                          "ddio              off      mlx5_0: root port"}) {
    EXPECT_NE(advice.text.find(line), std::string::npos) << advice.text;
  }
  const Outcome overridden =
      perdura(fmt::format("advise --responder {}/me.json --domain dmp", root));
  EXPECT_NE(overridden.text.find("domain            dmp      given\n"), std::string::npos)
      << overridden.text;
}

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
  const std::filesystem::path folder = temporary.path() / "out" / "probe";
  std::filesystem::create_directories(folder);
  std::filesystem::copy(PERDURA_SOURCE_DIR "/results/reference/probe/probes.csv",
                        folder / "probes.csv");
  std::ofstream(folder / "manifest.json") << "{}";
  const std::string out = folder.parent_path().string();
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
