// Octopus under the driver: the workloads that it can do, what they cost, and that all others are refused
// in one line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/fs/fs_parameters.h"
#include "bench/fs/operation.h"
#include "tests/bench/fs/points.h"

namespace perdura::bench {
namespace {

std::vector<std::string> on_octopus(std::string_view workload, std::vector<std::string> more = {}) {
  std::vector<std::string> changes = small(workload);
  changes.emplace_back("matrix.system=[\"octopus\"]");
  // Each file takes an extent of 64 KiB.
  changes.emplace_back("workload.size=67108864");
  const FileWorkloadEntry& entry = file_workload(workload);
  for (const auto& [parameter, value] : entry.takes) {
    if (parameter == "directory_width" && value > 60) {
      changes.emplace_back("workload.directory_width=20");
    }
    if (parameter == "append_size") changes.emplace_back("workload.append_size=100");
  }
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

bool can_do(std::string_view workload) {
  return workload != "rename" && workload != "varmail" && workload != "fileserver" &&
         workload != "webserver";
}

class OctopusDriverOn : public testing::TestWithParam<std::string> {};

TEST_P(OctopusDriverOn, RunsEachWorkloadThatItCanDo) {
  for (const FileWorkloadEntry& workload : file_workloads()) {
    if (!can_do(workload.name)) continue;
    SCOPED_TRACE(workload.name);
    const harness::Point point =
        plan(on_octopus(workload.name, {"workload.threads=2", "workload.application_nodes=2"}))
            .front();
    EXPECT_EQ(point.roles.to_text(), "2 applications and a metadata");
    const harness::Measurement result = tested().measure(point, GetParam());
    EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
    EXPECT_EQ(result.operations(), point.settings.number("operations"));
    if (workload.name == "create") {
      EXPECT_GT(result.costs_of("metadata").writes.total().bytes_issued, 0U);
    }
    EXPECT_TRUE(result.declared.contains("server_requests"));
  }
}

TEST_P(OctopusDriverOn, SeveralOperationsAreUnderWay) {
  const harness::Point point =
      plan(on_octopus("randrw", {"workload.threads=2", "workload.queue_depth=3"})).front();
  const harness::Measurement result = tested().measure(point, GetParam());
  EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
}

INSTANTIATE_TEST_SUITE_P(Platforms, OctopusDriverOn,
                         testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

// RPCs, READs and WRITEs of an operation.
std::vector<double> messages(std::string_view workload) {
  const harness::Measurement result = tested().measure(plan(on_octopus(workload)).front(), "sim");
  EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
  std::vector<double> all;
  for (const char* const each : {"rpcs_per_op", "extent_reads_per_op", "extent_writes_per_op"}) {
    all.push_back(result.declared.find(each)->second / static_cast<double>(result.operations()));
  }
  return all;
}

TEST(OctopusCosts, AnOperationIsOneRpcAndTheTransferOfItsData) {
  using Messages = std::vector<double>;
  for (const char* const name : {"create", "mkdir", "unlink", "rmdir", "stat", "utimens"}) {
    EXPECT_EQ(messages(name), (Messages{1, 0, 0})) << name;
  }
  EXPECT_EQ(messages("randread"), (Messages{1, 1, 0}));
  EXPECT_EQ(messages("randwrite"), (Messages{1, 0, 1}));
  EXPECT_EQ(messages("append"), (Messages{1, 0, 1}));
}

TEST(OctopusRefusals, AreOneLine) {
  const auto refusal = [](std::string_view workload, std::vector<std::string> more = {}) {
    return tested().refusal(on_octopus(workload, std::move(more)));
  };
  EXPECT_EQ(refusal("stat"), "no error");
  for (const FileWorkloadEntry& workload : file_workloads()) {
    EXPECT_EQ(refusal(workload.name) == "no error", can_do(workload.name)) << workload.name;
  }
  const auto says = [&](std::string_view workload, std::vector<std::string> more,
                        const std::string& what) {
    const std::string found = refusal(workload, std::move(more));
    EXPECT_TRUE(found.ends_with(what)) << found;
    EXPECT_EQ(found.find('\n'), found.npos);
    EXPECT_EQ(found.find("x.toml"), found.rfind("x.toml")) << found;
  };
  says("rename", {}, "octopus: it renames nothing; leave out the workload rename");
  says("varmail", {},
       "octopus: its files and directories have a fixed size, and those of varmail any; leave out "
       "the workload");
  says("randread", {"workload.file_size=65537"},
       "octopus: a file of 65537 bytes does not fit into its extent; raise extent_bytes, which is "
       "65536, or make files smaller");
  says("append", {"workload.append_size=1000"},
       "octopus: a file of 320000 bytes does not fit into its extent; raise extent_bytes, which is "
       "65536, or make files smaller");
  says("create", {"workload.directory_width=61"},
       "octopus: a directory has no room for 61 entries; raise directory_entries, which is 60, or "
       "lower directory_width");
  says("create", {"workload.groups=2"},
       "groups has no effect on octopus, which has one server; remove it");
  says("create", {"workload.application_at=\"stores\""},
       "application_at has no effect on octopus, which has one server; remove it");
  says("create", {"workload.replication=\"m-sync\""},
       "octopus cannot be in replicated memory; remove replication");
  EXPECT_NE(refusal("create", {"workload.persistence=\"correct\""}), "no error");
}

}  // namespace
}  // namespace perdura::bench
