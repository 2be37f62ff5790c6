// The messages of Orion's operations, as its sessions count them (section 4.2.1 of its paper).
#include <gtest/gtest.h>

#include "tests/bench/fs/points.h"

namespace perdura::bench {
namespace {

class OrionCosts : public testing::Test {
 protected:
  static harness::Measurement measure(std::string_view workload,
                                      std::vector<std::string> more = {}) {
    std::vector<std::string> changes = small(workload);
    changes.emplace_back("matrix.system=[\"orion\"]");
    changes.insert(changes.end(), more.begin(), more.end());
    const harness::Measurement result = tested().measure(plan(changes).front(), "sim");
    EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
    return result;
  }
  // Divided by the operations, unlike in the measurement.
  static double per_operation(const harness::Measurement& result, std::string_view metric) {
    return result.declared.find(metric)->second / static_cast<double>(result.operations());
  }
};

TEST_F(OrionCosts, AChangeOfOneInodeIsALogCommitOrAnRpc) {
  const harness::Measurement commits = measure("utimens");
  EXPECT_EQ(per_operation(commits, "commits_per_op"), 1);
  EXPECT_EQ(per_operation(commits, "rpcs_per_op"), 0);
  EXPECT_EQ(per_operation(commits, "tail_reads_per_op"), 1);
  const harness::Measurement rpcs = measure("utimens", {"systems.orion.updates=\"rpcs\""});
  EXPECT_EQ(per_operation(rpcs, "commits_per_op"), 0);
  EXPECT_EQ(per_operation(rpcs, "rpcs_per_op"), 1);
  EXPECT_EQ(rpcs.declared.at("mds_rpcs"), static_cast<double>(rpcs.operations()));
}

TEST_F(OrionCosts, ALogCommitThatIsNotAnsweredTakesLessTime) {
  const double answered = per_operation(measure("utimens"), "commit_us_per_op");
  const double alone = per_operation(measure("utimens", {"systems.orion.commit=\"speculative\""}),
                                     "commit_us_per_op");
  EXPECT_GT(alone, 0);
  EXPECT_LT(alone, answered);
}

TEST_F(OrionCosts, TheTimesOfAnOperationsMessagesArePartOfItsLatency) {
  const harness::Measurement result = measure("randwrite");
  double sum = 0;
  for (const char* const way : {"tail_read_us_per_op", "log_read_us_per_op", "commit_us_per_op",
                                "rpc_us_per_op", "page_read_us_per_op", "page_write_us_per_op"}) {
    sum += per_operation(result, way);
  }
  const double latency =
      result.kinds.at(kind_of(FileAction::write)).latency.mean() * 1e-3;  // from nanoseconds
  EXPECT_LT(sum, latency);
  EXPECT_GT(sum, latency / 2);
}

TEST_F(OrionCosts, LogsThatAreReadAreCounted) {
  // The copies of half of the directories and files have to go to make room for others.
  const harness::Measurement result =
      measure("stat", {"systems.orion.cached_log_pages=8", "workload.files=400"});
  EXPECT_GT(per_operation(result, "log_reads_per_op"), 0);
  EXPECT_GT(per_operation(result, "log_read_us_per_op"), 0);
}

}  // namespace
}  // namespace perdura::bench
