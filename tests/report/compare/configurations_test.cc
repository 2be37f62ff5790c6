// What two runs differ in that no column of points.csv tells.
#include "report/compare/configurations.h"

#include "tests/report/fixture.h"

namespace perdura::compare {
namespace {

class ConfigurationsTest : public report::ReportTest {
 protected:
  /// A folder below root() with this experiment, and this at the end of its manifest.
  void run(const std::string& name, const std::string& toml, const std::string& manifest = "",
           bool modelled = true) {
    result(name, report::latency_rows(), toml);
    write(name + "/manifest.json", std::string(R"({"experiment": "test", "provenance": ")") +
                                       (modelled ? "modelled\"" : "measured\"") + manifest + "}");
  }

  std::vector<report::ResultFolder> folders(const std::string& name) {
    auto read = report::read_result_folders(root() / name);
    EXPECT_TRUE(read) << read.error().message;
    return std::move(*read);
  }

  /// Of the folders "a" and "b", the lines without the paths.
  std::vector<std::string> lines() {
    std::vector<std::string> found;
    for (const Differing& each : differing_configurations(folders("a"), folders("b"))) {
      const std::string line = to_line(each);
      found.push_back(line.substr(line.find(": ") + 2));
    }
    return found;
  }
  using Lines = std::vector<std::string>;
};

TEST_F(ConfigurationsTest, AreNamedByKeyAndValues) {
  run("a", "[workload]\ncompletion = \"polling\"\noperations = 100\n[systems.erda]\nregions = 2\n",
      R"(, "seed": 1)");
  run("b", "[workload]\noperations = 200\ncompletion = \"event\"\n", R"(, "seed": 2)");
  EXPECT_EQ(lines(), Lines{"seed 1 / 2, systems.erda.regions 2 / -, workload.completion "
                           "'polling' / 'event', workload.operations 100 / 200"});
  const auto whole = differing_configurations(folders("a"), folders("b"));
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0].first, root() / "a");
  EXPECT_EQ(whole[0].second, root() / "b");
}

TEST_F(ConfigurationsTest, AreTheSameIfOnlyThatDiffersWhichChangesNothing) {
  run("a", "# a comment\ndescription = \"x\"\n[matrix]\nclients = [1, 2]\n",
      R"(, "points_done": 1, "sessions": [{"started": "x", "command_line": "a", "mpi_ranks": 1}])");
  run("b", report::latency_figure("9") + "[matrix]\nclients = [1,\n2]\n",
      R"(, "points_done": 2, "sessions": [{"started": "y", "command_line": "b", "mpi_ranks": 4}])");
  EXPECT_EQ(lines(), Lines{});
}

TEST_F(ConfigurationsTest, OfWhatWasMeasuredIncludeProcessesAndMachines) {
  for (const char* ranks : {"1", "3"}) {
    run(ranks == std::string("1") ? "a" : "b", "",
        std::string(R"(, "sessions": [{"started": ")") + ranks + R"(", "mpi_ranks": )" + ranks +
            R"(, "machines": [{"host": "h)" + ranks + "\"}]}]",
        false);
  }
  EXPECT_EQ(lines(), Lines{"sessions.0.machines.0.host h1 / h3, sessions.0.mpi_ranks 1 / 3"});
}

// Files that the manifest holds are many lines, of which one differs.
TEST_F(ConfigurationsTest, NameTheKeysOfProfilesSitesAndWorkloads) {
  const auto manifest = [](const std::string& latency, const std::string& host,
                           const std::string& reads) {
    return R"(, "profile": {"name": "p", "text": "# a profile\nname = 'p'\n[link]\nlatency_ns = )" +
           latency + R"(\n"}, "site": {"text": "[[host]]\nname = ')" + host +
           R"('\n"}, "workloads": [{"name": "w", "text": "# )" + reads +
           R"(\n", "settings": {"reads": ")" + reads + R"(", "scan.length": "3"}}])";
  };
  run("a", "", manifest("100", "h1", "0.5"));
  run("b", "", manifest("200", "h1", "0.95"));
  EXPECT_EQ(lines(), Lines{"profile.link.latency_ns 100 / 200, workload w: reads 0.5 / 0.95"});
  run("b", "", manifest("100", "h2", "0.5"));
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_EQ(lines()[0].find("site.host "), 0U) << lines()[0];
}

// What a file means is its driver's to say. A folder from before it was said has the text alone.
TEST_F(ConfigurationsTest, CompareWorkloadsByWhatTheyMeanIfBothFoldersSayIt) {
  const std::string before = R"(, "workloads": [{"name": "w", "text": "# one\nreads = 1\n")";
  const std::string after = R"(, "workloads": [{"name": "w", "text": "# two\nreads: 1\n")";
  const std::string meaning = R"(, "settings": {"reads": "1"})";
  run("a", "", before + meaning + "}]");
  run("b", "", after + meaning + "}]");
  EXPECT_EQ(lines(), Lines{});
  run("a", "", before + "}]");
  EXPECT_EQ(lines(), Lines{"workload w line 1 '# one' / '# two'"});
  run("a", "", after + "}]");
  EXPECT_EQ(lines(), Lines{});
}

TEST_F(ConfigurationsTest, OfATextOfNoFormatNameTheLine) {
  run("a", "", R"(, "profile": {"text": "no [ TOML\nsecond\n"})");
  run("b", "", R"(, "profile": {"text": "no [ TOML\nother\nthird\n"})");
  EXPECT_EQ(lines(), Lines{"profile.text line 2 'second' / 'other'"});
  run("b", "", R"(, "profile": {"text": "no [ TOML\n"})");
  EXPECT_EQ(lines(), Lines{"profile.text line 2 'second' / -"});
}

TEST_F(ConfigurationsTest, OfSeveralFoldersAreSetBesideTheFirst) {
  run("a/1", "seed = 1\n", R"(, "seed": 1)");
  run("a/2", "seed = 2\n", R"(, "seed": 2)");
  run("b/1", "seed = 1\n", R"(, "seed": 1)");
  run("b/2", "seed = 3\n", R"(, "seed": 3)");
  EXPECT_EQ(lines(), (Lines{"seed 1 / 2", "seed 1 / 3"}));
}

TEST_F(ConfigurationsTest, OfAnotherExperimentAreNotSetBesideIt) {
  run("a", "seed = 1\n");
  run("b", "seed = 2\n");
  write("b/manifest.json", R"({"experiment": "other"})");
  EXPECT_EQ(lines(), Lines{});
}

}  // namespace
}  // namespace perdura::compare
