// A driver may declare roles of any name: here a primary that replicates to mirrors. What each role
// uses reaches results, figures and comparisons, and profiles may describe its nodes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/config/override.h"
#include "harness/run/phases.h"
#include "harness/run/sweep.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "report/compare/matching.h"
#include "report/page_data.h"
#include "report/result_folder.h"
#include "report/templates.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

constexpr NodeId kMirrors = 2;
constexpr std::uint64_t kUpdates = 10;
constexpr std::uint32_t kUpdate = 100;

class Mirror final : public PhaseWork {
 public:
  Mirror(Thread& thread, fabric::RemoteKey& key) : thread_(thread), key_(key) {}
  Task<> prepare() override {
    region_ = thread_.node.create_region("copy", 1 * MiB, pmem::Medium::pm);
    key_ = thread_.endpoint.register_memory(*region_, fabric::Access::remote_all).key;
    const auto request = co_await thread_.endpoint.next_connection();
    fabric::QueuePairOptions options;
    options.completions = &completions_;
    queue_pair_ = request->accept(options, {});
  }

 private:
  Thread& thread_;
  fabric::RemoteKey& key_;
  std::unique_ptr<pmem::Region> region_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

class Primary final : public PhaseWork {
 public:
  Primary(Thread& thread, const Roles& roles, std::vector<fabric::RemoteKey>& keys)
      : thread_(thread), roles_(roles), keys_(keys) {}
  Task<> prepare() override {
    region_ = thread_.node.create_region("update", 64 * KiB, pmem::Medium::dram);
    memory_ = thread_.endpoint.register_memory(*region_, fabric::Access::local);
    for (NodeId i = 0; i < kMirrors; ++i) {
      const fabric::Address address{roles_.node("mirror", i), 0};
      fabric::Connection connection = co_await thread_.endpoint.connect(address, {}, {});
      if (connection.status != fabric::Status::success) throw PlatformError("no mirror");
      mirrors_.push_back(std::move(connection.queue_pair));
    }
  }
  Task<> operate() override {
    for (std::uint64_t update = 0; update < kUpdates; ++update) {
      for (NodeId i = 0; i < kMirrors; ++i) {
        const fabric::RemoteAddress there{keys_[i], update * kUpdate};
        co_await mirrors_[i]->write(memory_.local(0, kUpdate), there);
      }
    }
  }

 private:
  Thread& thread_;
  const Roles& roles_;
  std::vector<fabric::RemoteKey>& keys_;
  std::unique_ptr<pmem::Region> region_;
  fabric::MemoryRegion memory_;
  std::vector<std::unique_ptr<fabric::QueuePair>> mirrors_;
};

class MirrorDriver final : public Driver {
 public:
  std::string_view name() const override { return "mirroring"; }
  std::span<const Parameter> parameters() const override { return {}; }
  std::vector<DriverDeclarations::System> systems() const override { return {{"plain", {}}}; }
  Roles roles(const PointSettings&, NodeId) const override {
    return Roles({{"primary", 1}, {"mirror", kMirrors}});
  }
  void check(const Point&) const override {}
  Measurement run(Platform& platform, const Point& point) const override {
    std::vector<fabric::RemoteKey> keys(kMirrors);
    Phases phases(platform, 1 + kMirrors);
    for (NodeId i = 0; i < kMirrors; ++i) {
      platform.start_service(point.roles.node("mirror", i), 0, CompletionMode::polling,
                             [&, i](Thread& thread) -> Task<> {
                               Mirror work(thread, keys[i]);
                               co_await phases.serve(thread, work, true);
                             });
    }
    platform.start(point.roles.node("primary"), 0, CompletionMode::polling,
                   [&](Thread& thread) -> Task<> {
                     Primary work(thread, point.roles, keys);
                     co_await phases.take_part(thread, work, true);
                   });
    platform.run();
    Measurement measured;
    auto& kind = measured.kinds[{0, "update"}];
    kind.operations = kUpdates;
    kind.latency.record(1000, kUpdates);
    measured.elapsed = Microseconds(1);
    measured.at_work = {{0, Time(), Time(Microseconds(1)), kUpdates}};
    phases.costs().add_to(measured, point.roles);
    return measured;
  }
};

class MadeUpRolesTest : public testing::Test {
 protected:
  ExitCode run(const std::string& out, const std::string& more,
               std::vector<Override> changes = {}) {
    const fs::path file = temporary_.path() / "mirrors.toml";
    std::ofstream(file) << "name = \"mirrors\"\ndriver = \"mirroring\"\n"
                           "[workload]\nsystem = \"plain\"\n"
                        << more;
    const MirrorDriver driver;
    const Driver* const drivers[] = {&driver};
    RunRequest request;
    request.experiment.experiment = file.string();
    request.experiment.overrides = std::move(changes);
    request.out = temporary_.path() / out;
    request.command_line = "test";
    request.quiet = true;
    return run_experiment(request, Locations({PERDURA_SOURCE_DIR}), drivers, ranks_);
  }
  static Override profile(const std::string& name) {
    return parse_override(fmt::format("profile=\"{}\"", name));
  }

  test::TemporaryFolder temporary_;
  int argc_ = 0;
  char** argv_ = nullptr;
  Ranks ranks_{argc_, argv_};
};

TEST_F(MadeUpRolesTest, WhatARoleUsesReachesResultsFiguresAndComparisons) {
  ASSERT_EQ(run("a", "", {profile("erda-connectx3")}), ExitCode::done);
  ASSERT_EQ(run("b", "", {profile("erda-connectx3"), parse_override("seed=9")}), ExitCode::done);
  std::ofstream(temporary_.path() / "a" / "experiment.toml", std::ios::app)
      << "[[figure]]\nid = \"1\"\ntitle = \"Memory\"\nx = \"system\"\n"
         "y = \"mirror_nvm_peak_bytes\"\nplot = \"bars\"\n";
  const auto folders = report::read_result_folders(temporary_.path() / "a");
  ASSERT_TRUE(folders) << folders.error().message;
  const report::Points& points = folders->front().points;
  ASSERT_EQ(points.size(), 1U);
  // Both mirrors together; each WRITE is one packet, and so is its acknowledgment.
  const double header = 30;
  EXPECT_EQ(points.number(0, "primary_sent_bytes_per_op"), kMirrors * (kUpdate + header));
  EXPECT_EQ(points.number(0, "mirror_received_bytes_per_op"), kMirrors * (kUpdate + header));
  EXPECT_EQ(points.number(0, "mirror_sent_bytes_per_op"), kMirrors * header);
  EXPECT_EQ(points.number(0, "primary_received_bytes_per_op"), kMirrors * header);
  EXPECT_EQ(points.number(0, "mirror_nvm_bytes_per_op"), kMirrors * kUpdate);
  EXPECT_EQ(points.number(0, "mirror_nvm_peak_bytes"), kMirrors * MiB);
  EXPECT_EQ(points.number(0, "mirror_dram_peak_bytes"), 0);
  EXPECT_EQ(points.number(0, "primary_dram_peak_bytes"), 64 * KiB);
  EXPECT_FALSE(points.schema().find("server_sent_bytes_per_op")) << "there is no such role";
  const schema::FigureSpec& figure = folders->front().specs.figures.front();
  EXPECT_EQ(figure.schema.quantity(figure.y).axis_with_unit(), "Peak NVM of the mirror (MiB)");

  report::Data data;
  data["settings"] = report::settings_data(*folders, temporary_.path() / "a");
  const std::string page = report::render("appendix.html", data);
  EXPECT_NE(page.find("a primary and 2 mirrors"), std::string::npos) << page;

  const auto matching = compare::match({temporary_.path() / "a" / "points.csv"},
                                       {temporary_.path() / "b" / "points.csv"},
                                       {"mirror_received_bytes_per_op", "primary_dram_peak_bytes"});
  ASSERT_TRUE(matching) << matching.error().message;
  EXPECT_EQ(matching->pairs.size(), 2U);
}

TEST_F(MadeUpRolesTest, AProfileMayDescribeThemAndNoOthers) {
  const std::string base =
      read_whole(fs::path(PERDURA_SOURCE_DIR) / "profiles/erda-connectx3.toml").value();
  const fs::path file = temporary_.path() / "mirrors-profile.toml";
  std::ofstream(file) << base << "[role.mirror.link]\nheader_bytes = 70\n";
  ASSERT_EQ(run("a", "", {profile(file.string())}), ExitCode::done);
  const auto points = report::Points::read(temporary_.path() / "a" / "points.csv");
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_EQ(points->number(0, "mirror_received_bytes_per_op"), kMirrors * (kUpdate + 70.0));

  std::ofstream(file) << base << "[role.mirror]\n[role.server]\ncores = 4\n";
  const auto lines = std::count(base.begin(), base.end(), '\n');
  try {
    run("b", "", {profile(file.string())});
    ADD_FAILURE() << "was accepted";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(),
              fmt::format("{}:{}: no node has the role 'server'; the roles are: primary, mirror",
                          file.string(), lines + 2));
  }
  EXPECT_FALSE(fs::exists(temporary_.path() / "b")) << "found before anything runs";
}

}  // namespace
}  // namespace perdura::harness
