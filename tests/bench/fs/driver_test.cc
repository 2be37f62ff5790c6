// The driver of file systems: every experiment of ours can be planned, every workload does what it
// says on every system and in a directory of this machine, and what cannot be is refused in one
// line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "bench/fs/fs_parameters.h"
#include "bench/fs/operation.h"
#include "bench/fs/target.h"
#include "harness/results/points.h"
#include "tests/bench/fs/points.h"
#include "tests/support/temporary_directory.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;

std::uint64_t count_of(const Measurement& result, FileAction action) {
  const auto found = result.kinds.find(kind_of(action));
  return found == result.kinds.end() ? 0 : found->second.operations;
}

void expect_valid(const Measurement& result, const Point& point) {
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.usage_error, "");
  EXPECT_EQ(result.operations(), point.settings.number("operations"));
  for (const auto& [kind, measured] : result.kinds) {
    EXPECT_EQ(measured.errors, 0U) << kind.name;
    EXPECT_EQ(measured.latency.count(), measured.operations) << kind.name;
  }
  EXPECT_GT(result.elapsed, Picoseconds{});
}

TEST(FsDriver, PlansTheExperiments) {
  int experiments = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PERDURA_SOURCE_DIR "/experiments")) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with("fs-") || name.starts_with("orion-");
    if (!is_ours && name != "mojim-filebench.toml") continue;
    const auto experiment =
        harness::load_experiment(entry.path().string(), tested().declarations());
    EXPECT_GE(plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), driver(), 1).size(),
              1U);
    ++experiments;
  }
  EXPECT_GE(experiments, 5);
}

TEST(FsDriver, HasAtMostOneNodeForEachThread) {
  const auto roles = [](const std::string& workload, const std::string& threads) {
    std::vector<std::string> changes = small(workload);
    changes.insert(changes.end(), {"matrix.system=[\"orion\"]", "workload.application_nodes=4"});
    if (!threads.empty()) changes.push_back("workload.threads=" + threads);
    return plan(changes).front().roles.nodes_of("application");
  };
  EXPECT_EQ(roles("create", "2"), 2);
  EXPECT_EQ(roles("create", "9"), 4);
  EXPECT_EQ(roles("create", ""), 1) << "the workload's threads, if none are given";
}

TEST(FsDriver, ThreadsMayShareOneFile) {
  for (const fs::FsSystem& system : systems::fs_systems()) {
    for (const char* const workload : {"randrw", "append", "fsync"}) {
      SCOPED_TRACE(fmt::format("{} {}", system.info.name, workload));
      auto changes = small(workload);
      changes.push_back(fmt::format("matrix.system=[\"{}\"]", system.info.name));
      changes.insert(changes.end(), {"workload.threads=3", "workload.shared_file=1"});
      if (system.cluster != nullptr) changes.emplace_back("workload.application_nodes=3");
      const Point point = plan(changes).front();
      expect_valid(tested().measure(point, "sim"), point);
    }
  }
}

// The time that a program takes between its operations is not part of their latency.
TEST(FsDriver, ThinksBeforeEachOperation) {
  const Measurement without = tested().measure(plan().front(), "sim");
  const Measurement with = tested().measure(plan({"workload.think_us=5"}).front(), "sim");
  const auto mean = [](const Measurement& result) {
    return result.kinds.at(kind_of(FileAction::create)).latency.mean();
  };
  EXPECT_NEAR(mean(with), mean(without), mean(without) * 0.02);
  const double more =
      std::chrono::duration<double, std::micro>(with.elapsed - without.elapsed).count();
  EXPECT_NEAR(more, 299 * 5, 30);
}

class FsDriverOn : public testing::TestWithParam<std::string> {};

TEST_P(FsDriverOn, RunsEachWorkloadOnEachSystem) {
  for (const fs::FsSystem& system : systems::fs_systems()) {
    for (const FileWorkloadEntry& workload : file_workloads()) {
      SCOPED_TRACE(fmt::format("{} {}", system.info.name, workload.name));
      auto changes = small(workload.name);
      changes.push_back(fmt::format("matrix.system=[\"{}\"]", system.info.name));
      const Point point = plan(changes).front();
      const Measurement result = tested().measure(point, GetParam());
      expect_valid(result, point);
      // On a real platform the costs of an empty interval are subtracted, and on a busy machine
      // this one may have cost more than so few operations.
      EXPECT_GE(result.declared.at("application_cpu_us_per_op"), 0);
      if (GetParam() == "sim") {
        EXPECT_GT(result.declared.at("application_cpu_us_per_op"), 0);
      }
      const double written = result.declared.at("written_bytes_per_op");
      EXPECT_EQ(result.declared.contains("write_amplification"), written > 0);
      if (written > 0) {
        // What is written is in persistent memory, and more.
        EXPECT_GT(result.declared.at("write_amplification"), 1);
      }
    }
  }
}

TEST_P(FsDriverOn, LanesOfAThreadAndThreadsHaveFilesOfTheirOwn) {
  for (const char* const workload : {"create", "rename", "randrw", "varmail", "mdtest"}) {
    SCOPED_TRACE(workload);
    auto changes = small(workload);
    changes.emplace_back("workload.threads=2");
    changes.emplace_back("workload.queue_depth=3");
    const Point point = plan(changes).front();
    expect_valid(tested().measure(point, GetParam()), point);
  }
}

// Copies get all that is written, and nothing that is only read.
TEST_P(FsDriverOn, AFileSystemInReplicatedMemory) {
  for (const char* const memory : {"s-unreplicated", "m-async", "m-sync", "m-syncsec"}) {
    for (const char* const workload : {"create", "rename", "randwrite", "varmail", "mdtest"}) {
      SCOPED_TRACE(fmt::format("{} {}", memory, workload));
      auto changes = small(workload);
      changes.emplace_back("workload.threads=2");
      changes.push_back(fmt::format("workload.replication=\"{}\"", memory));
      const Point point = plan(changes).front();
      const Measurement result = tested().measure(point, GetParam());
      expect_valid(result, point);
      if (point.roles.node_count() == 1) continue;
      EXPECT_GT(static_cast<double>(result.costs_of("mirror").writes.total().bytes_issued),
                result.declared.at("written_bytes_per_op"));
    }
    auto changes = small("randread");
    changes.push_back(fmt::format("workload.replication=\"{}\"", memory));
    const Measurement result = tested().measure(plan(changes).front(), GetParam());
    EXPECT_EQ(result.costs_of("mirror").writes.total().bytes_issued, 0U);
  }
}

bool has_stores(const fs::FsSystem& system) {
  return system.cluster != nullptr &&
         std::any_of(system.cluster->small.begin(), system.cluster->small.end(),
                     [](const auto& server) { return server.role == fs::FsRole::store; });
}

// The threads of the application share out over nodes, or over the nodes of the stores, and each
// server has its costs.
TEST_P(FsDriverOn, AFileSystemThatHasServers) {
  for (const fs::FsSystem& system : systems::fs_systems()) {
    if (system.cluster == nullptr) continue;
    std::vector<std::string> places{"workload.application_nodes=2"};
    if (has_stores(system)) places.emplace_back("workload.application_at=\"stores\"");
    for (const std::string& place : places) {
      for (const char* const workload :
           {"create", "rename", "utimens", "randrw", "append", "varmail", "mdtest"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", system.info.name, place, workload));
        auto changes = small(workload);
        changes.push_back(fmt::format("matrix.system=[\"{}\"]", system.info.name));
        if (has_stores(system)) changes.emplace_back("workload.groups=2");
        changes.emplace_back("workload.threads=4");
        changes.emplace_back(place);
        const Point point = plan(changes).front();
        const bool is_at_stores = point.roles.nodes_of("application") == 0;
        EXPECT_EQ(point.roles.to_text(), is_at_stores ? "a metadata and 2 stores"
                                         : has_stores(system)
                                             ? "2 applications, a metadata and 2 stores"
                                             : "2 applications and a metadata");
        const Measurement result = tested().measure(point, GetParam());
        expect_valid(result, point);
        EXPECT_GT(result.costs_of("metadata").writes.total().bytes_issued, 0U);
        for (const services::Metric& metric : system.cluster->server_metrics) {
          EXPECT_TRUE(result.declared.contains(metric.name)) << metric.name;
        }
      }
    }
  }
}

TEST_P(FsDriverOn, CountsWhatIsReadAndWritten) {
  const Point job =
      plan({workload_is("fsync"), "workload.file_size=65536", "workload.size=16777216"}).front();
  const Measurement result = tested().measure(job, GetParam());
  EXPECT_EQ(count_of(result, FileAction::write), 150U);
  EXPECT_EQ(count_of(result, FileAction::fsync), 150U);
  EXPECT_EQ(result.declared.at("written_bytes_per_op"), 150 * 4096.0);
  EXPECT_EQ(result.declared.at("read_bytes_per_op"), 0);
}

INSTANTIATE_TEST_SUITE_P(Platforms, FsDriverOn, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

// The same seed gives the same results on a model, another one others.
TEST(FsDriver, IsDeterministicOnAModel) {
  for (const char* const workload : {"randrw", "varmail"}) {
    const auto with_seed = [&](const char* seed) {
      auto changes = small(workload);
      changes.emplace_back(seed);
      Measurement result = tested().measure(plan(changes).front(), "sim");
      return result.serialize();
    };
    EXPECT_EQ(with_seed("seed=3"), with_seed("seed=3"));
    EXPECT_NE(with_seed("seed=3"), with_seed("seed=4"));
  }
}

class Directory : public testing::Test {
 protected:
  Point point(std::vector<std::string> changes) const {
    changes.emplace_back("matrix.system=[\"path\"]");
    changes.push_back(fmt::format("systems.path.path=\"{}\"", directory_.path().string()));
    return plan(changes).front();
  }
  bool is_empty() const { return std::filesystem::is_empty(directory_.path()); }

  perdura::test::TemporaryDirectory directory_{"/dev/shm", "fs-driver"};
};

TEST_F(Directory, RunsEachWorkloadAndRemovesWhatItMade) {
  for (const FileWorkloadEntry& workload : file_workloads()) {
    SCOPED_TRACE(workload.name);
    const Point of_path = point(small(workload.name));
    const Measurement result = tested().measure(of_path, "shm");
    expect_valid(result, of_path);
    EXPECT_TRUE(is_empty());
    EXPECT_FALSE(result.declared.contains("write_amplification"));
    EXPECT_TRUE(result.roles.empty()) << "what the kernel writes is not known";
    EXPECT_TRUE(result.declared.contains("application_cpu_us_per_op"));
  }
}

TEST_F(Directory, ThePointSaysWhatFileSystemItIs) {
  EXPECT_EQ(point({}).settings.text("file_system"), "tmpfs");
  EXPECT_EQ(plan({workload_is("create")}).front().settings.text("file_system"), "");
}

// The medium that results name is that of the data, which is not the platform's.
TEST_F(Directory, ThePointSaysWhereItsDataAre) {
  EXPECT_EQ(driver().directory_of_data(point({})), directory_.path());
  EXPECT_EQ(driver().directory_of_data(plan({workload_is("create")}).front()), "");
}

TEST_F(Directory, IsRefusedOnAModel) {
  try {
    driver().check_platform_of(point({}), "sim", "x.toml:3");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "x.toml:3: the system path makes system calls, which take real time; set "
                 "platform to \"shm\"");
  }
  driver().check_platform_of(point({}), "shm", "x.toml:3");
  driver().check_platform_of(plan().front(), "sim", "x.toml:3");
}

// Out of space is an end, not a crash, and says what helps.
TEST(FsDriver, AFileSystemThatIsFullFailsThePoint) {
  const std::vector<std::string> while_it_is_filled{workload_is("randwrite"),
                                                    "workload.size=1048576"};
  const std::vector<std::string> later{workload_is("append"), "workload.size=1048576",
                                       "workload.append_size=65536"};
  for (const auto& changes : {while_it_is_filled, later}) {
    const Measurement result = tested().measure(plan(changes).front(), "sim");
    EXPECT_EQ(result.verdict, Verdict::failed);
    EXPECT_NE(result.reason.find("No space left on device; raise size"), std::string::npos)
        << result.reason;
    EXPECT_EQ(result.reason.find('\n'), std::string::npos);
  }
}

TEST(FsDriver, APersonalityWithTooFewFilesSaysSo) {
  const Measurement result = tested().measure(
      plan({workload_is("varmail"), "workload.files=1", "workload.size=16777216"}).front(), "sim");
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_NE(result.reason.find("raise files"), std::string::npos) << result.reason;
}

TEST(FsDriver, RefusesWhatCannotBe) {
  const auto expect = [](const std::vector<std::string>& changes, std::string_view what) {
    const std::string said = tested().refusal(changes);
    EXPECT_NE(said.find(what), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  };
  EXPECT_EQ(tested().refusal({}), "no error");
  expect({"workload.replication=\"m-sink\""}, "unknown replication 'm-sink'");
  expect({"workload.replication=\"m-sync\"", "workload.queue_depth=2"},
         "a thread of a replicated file system");
  expect({workload_is("creat")}, "must be \"create\"");
  expect({"workload.fsync_every=3"}, "fsync_every has no effect on the workload create");
  expect({workload_is("read"), "workload.file_size=100"}, "has no place for 4096 bytes");
  expect({"workload.file_system=\"ext4\""}, "file_system is filled in");
  expect({"matrix.system=[\"nov\"]"}, "unknown system 'nov'");
  expect({"timeline.interval_us=100"}, "not recorded over time");
  expect({"workload.size=1048576", "systems.nova.inodes=100000"}, "nova: inodes is 100000");
  expect({"workload.groups=2"}, "groups has no effect on nova, which has no servers");
  expect({"workload.persistence=\"correct\""}, "nova has no method to choose");
  for (const fs::FsSystem& each : systems::fs_systems()) {
    if (each.cluster == nullptr) continue;
    const std::string system = fmt::format("matrix.system=[\"{}\"]", each.info.name);
    if (!has_stores(each)) {
      expect({system, "workload.replication=\"m-sync\""}, "cannot be in replicated memory");
      expect({system, "workload.groups=2"}, "groups has no effect on");
      continue;
    }
    expect({system, "workload.replication=\"m-sync\""}, "keeps its copies itself");
    expect({system, "workload.application_nodes=2", "workload.application_at=\"stores\""},
           "remove application_nodes");
  }
  expect({"matrix.system=[\"path\"]"}, "give --path DIR");
  expect({"matrix.system=[\"path\"]", "systems.path.path=\"/no/such\""},
         "/no/such: No such file or directory");
  expect({"matrix.system=[\"path\"]", "systems.path.path=\"/etc/passwd\""},
         "/etc/passwd: Not a directory");
  const std::string in_memory = "systems.path.path=\"/dev/shm\"";
  expect({"matrix.system=[\"path\"]", in_memory, "workload.queue_depth=2"},
         "system calls block a thread");
  EXPECT_EQ(
      tested().refusal({"matrix.system=[\"path\", \"nova\"]", in_memory, "workload.size=16777216"}),
      "no error")
      << "they can be measured in one run";
  expect({"matrix.system=[\"path\"]", in_memory, "workload.replication=\"m-sync\""},
         "replication has no effect");
}

}  // namespace
}  // namespace perdura::bench
