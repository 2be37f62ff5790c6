// The program itself: what it writes, and its exit codes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

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

}  // namespace
}  // namespace perdura
