// perdura probe and perdura plan as a user starts them.
#include <filesystem>

#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

// Every rank is a node: what takes more of them is left out, and says so.
TEST(CliProbe, TwoRanksAreTwoNodesAndWhatTheyFindIsAProfile) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome probed =
      mpirun(2, "probe --platform shm --set rdma --quick --out " + folder.string());
  ASSERT_EQ(probed.code, 0) << probed.text;
  EXPECT_NE(probed.text.find("not measured: it takes 4 nodes, a rank each; start mpirun -n 4"),
            std::string::npos)
      << probed.text;
  const std::string readings = read(folder / "probes.csv");
  EXPECT_NE(readings.find("shm,measured,host,rdma-latency,pm,WRITE"), std::string::npos);
  EXPECT_EQ(readings.find("rdma-inbound"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder / "rdma-registration-pm.svg"));
  const Outcome run = perdura("run erda-latency --set workload.operations=100 --profile " +
                              (folder / "profile.toml").string() + " --quiet --out " +
                              (temporary.path() / "run").string());
  EXPECT_EQ(run.code, 0) << run.text;
}

TEST(CliProbe, MemoryThatCannotBeHadIsRefusedBeforeAnythingIsWritten) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const Outcome outcome = perdura(
      "probe --platform shm --set memory --quick --pm-directory /proc --out " + folder.string());
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_FALSE(fs::exists(folder));
}

// What was measured before something went wrong is kept.
TEST(CliProbe, AProbeThatFailsTakesNothingFromThoseBeforeIt) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "out";
  const fs::path memory = temporary.path() / "pm";
  fs::create_directory(memory);
  // Each probe makes a directory of its own for its regions; here a file has the name of a later
  // one.
  const Outcome outcome =
      shell(fmt::format("sh -c 'touch {0}/perdura-run-$$-5; exec {1}'", memory.string(),
                        perdura_command(fmt::format("probe --platform shm --set rdma --quick "
                                                    "--pm-directory {} --out {}",
                                                    memory.string(), folder.string()))));
  EXPECT_NE(outcome.text.find("choose another pm_directory; 3 of "), std::string::npos)
      << outcome.text;
  EXPECT_NE(read(folder / "probes.csv").find("rdma-latency,pm,READ"), std::string::npos);
  EXPECT_NE(read(folder / "manifest.json").find("\"failed\""), std::string::npos);
}

// A plan is made where there is no device, as on a login node.
TEST(CliPlan, NeedsNothingOfThePlatform) {
  const Outcome planned = perdura("plan erda-shm --platform verbs");
  if (planned.text.find("built without libibverbs") != std::string::npos) GTEST_SKIP();
  EXPECT_EQ(planned.code, 0) << planned.text;
  EXPECT_NE(planned.text.find("ranks"), std::string::npos) << planned.text;
}

}  // namespace
}  // namespace perdura
