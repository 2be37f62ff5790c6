// The driver of writes to a remote file: every system is measured on every platform, and its file
// has what was written; the emulations differ by their indirections alone; what cannot be is refused.
#include "bench/remote_file/remote_file_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/remote_file/remote_file_run.h"
#include "tests/bench/driver_under_test.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Verdict;

constexpr std::uint64_t kWrites = 200;
constexpr const char* kEmulated[] = {"mojim-emu", "lite-emu", "orion-emu"};

constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"remote-file\"\n"
    "platform = \"sim\"\n"
    "[workload]\n"
    "operations = 200\n"
    "warmup = 20\n"
    "file_size = 65536\n"
    "completion = \"polling\"\n"
    "[systems.filemr]\n"
    "variant_of = \"novad\"\n"
    "writes = \"in-place\"\n"
    "[matrix]\n"
    "system = [\"lite-emu\"]\n";

const DriverUnderTest& tested() {
  static const RemoteFileDriver driver;
  static const DriverUnderTest one(driver, kText);
  return one;
}

std::string of_system(std::string_view name) { return fmt::format("matrix.system=[\"{}\"]", name); }

Measurement measured(std::string_view system, const std::string& platform = "sim",
                     std::vector<std::string> more = {}) {
  more.push_back(of_system(system));
  return tested().measure(tested().plan(more).front(), platform);
}

double mean(const Measurement& measurement) {
  return measurement.kinds.at(kFileWrite).latency.mean();
}

// Nanoseconds of a write, on sim.
double mean_of(std::string_view system, const std::vector<std::string>& more = {}) {
  const Measurement result = measured(system, "sim", more);
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  return mean(result);
}

double indirection_of(const Measurement& measurement) {
  return measurement.declared.at("indirection_us_per_op") * 1000 / kWrites;
}

// The run reads the file in the end, and is invalid if it has not what was written last.
TEST(RemoteFile, EachPlatformMeasuresEachWriteOfEachSystem) {
  const char* const systems[] = {"local-mmap", "mojim-emu", "lite-emu", "orion-emu",
                                 "novad",      "filemr",    "orion",    "m-sync"};
  for (const std::string& platform : perdura::test::platform_names()) {
    for (const char* const system : systems) {
      SCOPED_TRACE(fmt::format("{} on {}", system, platform));
      const Measurement result = measured(system, platform);
      EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
      EXPECT_EQ(result.usage_error, "");
      EXPECT_EQ(result.kinds.at(kFileWrite).latency.count(), kWrites);
      EXPECT_EQ(result.kinds.at(kFileWrite).errors, 0U);
      EXPECT_GT(result.elapsed, Picoseconds{});
    }
  }
}

// Section 5.4.4: all of them send the same WRITE. Latencies are whole nanoseconds.
TEST(RemoteFile, EmulationsDifferByTheirIndirectionsAlone) {
  const Measurement first = measured("mojim-emu");
  const double write = mean(first) - indirection_of(first);
  for (const char* const system : kEmulated) {
    const Measurement each = measured(system);
    EXPECT_GT(indirection_of(each), 0) << system;
    EXPECT_NEAR(mean(each) - indirection_of(each), write, 1) << system;
  }
}

// Section 5.4.4: Mojim calls msync, Orion calls write; LITE writes to shared memory.
TEST(RemoteFile, TwoOfTheEmulationsMakeOneSystemCallEach) {
  const std::map<std::string, double> calls{{"local-mmap", 0}, {"mojim-emu", 1}, {"lite-emu", 0},
                                            {"orion-emu", 1},  {"filemr", 0},    {"m-sync", 0}};
  for (const auto& [system, count] : calls) {
    EXPECT_NEAR(mean_of(system, {"workload.system_call_ns=5000"}) - mean_of(system), count * 5000,
                1)
        << system;
  }
}

TEST(RemoteFile, OnlyALocalFileSendsNothing) {
  const auto sent = [](std::string_view system) {
    return measured(system).costs_of("client").traffic.sent;
  };
  EXPECT_EQ(sent("local-mmap"), 0U);
  for (const char* const system : {"mojim-emu", "lite-emu", "orion-emu", "filemr", "m-sync"}) {
    EXPECT_GE(sent(system), kWrites * 1024) << system;
  }
}

// A file in memory that loses what is written from some time on.
class ForgetfulFile final : public RemoteFile {
 public:
  Task<> open(Thread&) override { co_return; }
  Task<> serve(Thread&) override { co_return; }
  Task<std::unique_ptr<FileWriter>> connect(Thread&) override {
    co_return std::make_unique<Writer>();
  }

 private:
  class Writer final : public FileWriter {
   public:
    std::span<std::byte> buffer() override { return buffer_; }
    Task<std::string> write(Bytes offset) override {
      if (++writes_ < kWrites)
        std::copy(buffer_.begin(), buffer_.end(), file_.begin() + at(offset));
      co_return "";
    }
    Task<std::string> read(Bytes offset) override {
      std::copy_n(file_.begin() + at(offset), buffer_.size(), buffer_.begin());
      co_return "";
    }

   private:
    static std::ptrdiff_t at(Bytes offset) { return static_cast<std::ptrdiff_t>(offset); }
    std::vector<std::byte> buffer_ = std::vector<std::byte>(1024);
    std::vector<std::byte> file_ = std::vector<std::byte>(65536);
    std::uint64_t writes_ = 0;
  };
};

TEST(RemoteFile, AFileThatHasNotWhatWasWrittenIsInvalid) {
  const harness::Point point = tested().plan({}).front();
  const auto platform = perdura::test::make_platform("sim", 2);
  ForgetfulFile file;
  const Measurement result =
      RemoteFileRun(*platform, point, file,
                    {.file_size = 65536, .write_size = 1024, .client = point.roles.node("client")})
          .execute();
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_NE(result.reason.find("what was written there last"), std::string::npos) << result.reason;
}

TEST(RemoteFile, RefusesWhatCannotBe) {
  EXPECT_EQ(tested().refusal({}), "no error");
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"workload.value_size=1000"}, "no multiple of writes of 1000"},
      {{"timeline.interval_us=100"}, "not recorded over time"},
      {{of_system("nova")}, "unknown system 'nova'"},
      {{of_system("orion"), "workload.size=1048576", "systems.orion.log_page_bytes=1"},
       "log_page_bytes"},
  };
  for (const auto& [changes, what] : wrong) {
    EXPECT_NE(tested().refusal(changes).find(what), std::string::npos) << tested().refusal(changes);
  }
}

std::string refused_on(std::string_view platform, const std::vector<std::string>& changes) {
  try {
    RemoteFileDriver().check_platform_of(tested().plan(changes).front(), platform, "x.toml:3");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RemoteFile, RealPlatformsTakeTheirOwnTimeForSystemCalls) {
  EXPECT_EQ(refused_on("sim", {"workload.system_call_ns=300"}), "no error");
  EXPECT_EQ(refused_on("shm", {}), "no error");
  EXPECT_NE(refused_on("shm", {"workload.system_call_ns=300"}).find("remove system_call_ns"),
            std::string::npos);
  EXPECT_NE(refused_on("verbs", {}).find("use shm or sim"), std::string::npos);
  EXPECT_EQ(refused_on("verbs", {of_system("orion-emu")}), "no error");
}

TEST(RemoteFile, PlansItsExperiments) {
  for (const char* name : {"filemr-files", "filemr-files-shm"}) {
    const auto experiment = harness::load_experiment(
        fmt::format("{}/experiments/{}.toml", PERDURA_SOURCE_DIR, name), tested().declarations());
    EXPECT_GE(
        plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), RemoteFileDriver(), 1)
            .size(),
        7U);
  }
}

}  // namespace
}  // namespace perdura::bench
