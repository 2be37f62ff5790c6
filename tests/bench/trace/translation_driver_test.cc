// The driver of translations: the traces that are kept can be replayed, FileMR's ranges need fewer
// entries and hit more often, and what cannot be is refused before anything runs.
#include "bench/trace/translation_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "bench/trace/translation_replay.h"
#include "platform/sim/sim_platform.h"
#include "tests/bench/driver_under_test.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

namespace perdura::bench {
namespace {

constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"translation\"\n"
    "platform = \"sim\"\n"
    "[matrix]\n"
    "workload = [\"varmail\"]\n"
    "system = [\"filemr\"]\n";

const DriverUnderTest& tested() {
  static const TranslationDriver driver;
  static const DriverUnderTest one(driver, kText);
  return one;
}

harness::Measurement replayed(const std::string& workload, const std::string& system,
                              std::vector<std::string> more = {}) {
  more.push_back(fmt::format("matrix.workload=[\"{}\"]", workload));
  more.push_back(fmt::format("matrix.system=[\"{}\"]", system));
  return tested().measure(tested().plan(more).front(), "sim");
}

std::vector<std::string> traces() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(PERDURA_SOURCE_DIR "/workloads/traces")) {
    names.push_back(entry.path().stem());
  }
  return names;
}

TEST(TranslationDriver, ReplaysEveryTraceThatIsKept) {
  EXPECT_GE(traces().size(), 4U);
  for (const std::string& trace : traces()) {
    std::map<std::string, harness::Measurement> by;
    for (const std::string system : {"mr-4k", "mr-2m", "filemr"}) {
      by[system] = replayed(trace, system, {"workload.growth=65536"});
      const harness::Measurement& each = by[system];
      EXPECT_EQ(each.verdict, harness::Verdict::valid);
      EXPECT_GT(each.declared.at("look_ups"), 0);
      EXPECT_LE(each.declared.at("cache_hits"), each.declared.at("look_ups"));
      EXPECT_NEAR(each.declared.at("hit_rate_percent"),
                  100 * each.declared.at("cache_hits") / each.declared.at("look_ups"), 1e-9);
      EXPECT_EQ(each.operations(), by["mr-4k"].operations()) << "the accesses are the same";
    }
    EXPECT_LT(by["filemr"].declared.at("table_entries"), by["mr-4k"].declared.at("table_entries"));
    EXPECT_GT(by["filemr"].declared.at("hit_rate_percent"),
              by["mr-4k"].declared.at("hit_rate_percent"))
        << trace;
  }
}

// With parts of a page that do not adjoin, a range is a page.
TEST(TranslationDriver, RangesOfAPageAreNoBetterThanPages) {
  const auto pages = replayed("sqlite", "mr-4k", {"workload.extent=4096"});
  const auto ranges = replayed("sqlite", "filemr", {"workload.extent=4096"});
  for (const char* column : {"look_ups", "table_entries", "cache_hits"}) {
    EXPECT_EQ(pages.declared.at(column), ranges.declared.at(column)) << column;
  }
}

// --- regions

constexpr std::string_view kRegion =
    "name = \"x\"\n"
    "driver = \"translation\"\n"
    "platform = \"sim\"\n"
    "[matrix]\n"
    "region_size = [67108864]\n"
    "system = [\"mr-4k\", \"mr-2m\", \"filemr\"]\n";

const DriverUnderTest& of_region() {
  static const TranslationDriver driver;
  static const DriverUnderTest one(driver, kRegion);
  return one;
}

// Section 5.1.2: the time to register scales with the number of entries, which is that of pages, or
// of ranges.
TEST(TranslationDriver, ARegionTakesTheTimeOfItsEntries) {
  const sim::Profile profile = sim::load_profile(perdura::test::profile_path("optane-connectx3"));
  const std::map<std::string, std::uint64_t> entries{
      {"mr-4k", 64 * MiB / (4 * KiB)}, {"mr-2m", 64 * MiB / (2 * MiB)}, {"filemr", 1}};
  for (const harness::Point& point : of_region().plan({})) {
    const std::string& system = point.settings.system.text;
    sim::SimPlatform platform(profile, 1);
    const auto declared = TranslationDriver().run(platform, point).declared;
    EXPECT_EQ(declared.at("table_entries"), entries.at(system)) << system;
    const double ms = to_microseconds(profile.translation->registration +
                                      static_cast<std::int64_t>(entries.at(system)) *
                                          profile.translation->registration_entry) /
                      1000;
    EXPECT_NEAR(declared.at("registration_ms"), ms, 1e-9) << system;
    EXPECT_NEAR(declared.at("registration_mb_s"), 64 * MiB / ms / 1000, 1e-6) << system;
  }
}

TEST(TranslationDriver, SaysNothingOfTimesThatItsProfileDoesNotHave) {
  const auto declared = of_region().measure(of_region().plan({}).front(), "sim").declared;
  EXPECT_EQ(declared.count("registration_ms"), 0U);
  EXPECT_EQ(declared.count("registration_mb_s"), 0U);
}

// --- files as nova has them

class PlacedByNova : public testing::Test {
 protected:
  double entries(const std::string& text, const std::string& system,
                 std::vector<std::string> more = {"workload.layout=\"nova\""}) {
    const auto file = folder_.path() / "placed.txt";
    std::ofstream(file) << text;
    return replayed(file.string(), system, std::move(more)).declared.at("table_entries");
  }

 private:
  const perdura::test::TemporaryDirectory folder_{testing::TempDir(), "placed"};
};

TEST_F(PlacedByNova, AFileThatIsWrittenAtOnceIsOneRange) {
  EXPECT_EQ(entries("file 0\nwrite 0 0 262144\n", "filemr"), 1);
  EXPECT_EQ(entries("file 262144\n", "filemr"), 1) << "which was there before the trace";
  EXPECT_EQ(entries("file 0\nwrite 0 0 262144\n", "mr-4k"), 64);
}

TEST_F(PlacedByNova, FilesThatGrowByTurnsAreInPieces) {
  std::string text = "file 0\nfile 0\n";
  for (int i = 0; i < 8; ++i) {
    for (int file = 0; file < 2; ++file) text += fmt::format("append {} {} 4096\n", file, i * 4096);
  }
  EXPECT_EQ(entries(text, "filemr"), 16);
  EXPECT_EQ(entries(text, "filemr", {}), 2) << "if all of a file adjoins";
  EXPECT_EQ(entries(text, "mr-4k"), 16);
}

// Data is written to new blocks, so that a write within a file divides it.
TEST_F(PlacedByNova, AWriteWithinAFileDividesIt) {
  EXPECT_EQ(entries("file 0\nwrite 0 0 65536\nwrite 0 8192 4096\n", "filemr"), 3);
}

TEST_F(PlacedByNova, HolesAndWhatWasCutOffHaveNoEntries) {
  EXPECT_EQ(entries("file 0\nwrite 0 40960 4096\n", "mr-4k"), 1);
  EXPECT_EQ(entries("file 0\nwrite 0 0 65536\ntruncate 0 5000\n", "mr-4k"), 2);
}

TEST_F(PlacedByNova, WhatDoesNotFitIsRefused) {
  try {
    entries("file 0\nwrite 0 0 4194304\n", "filemr",
            {"workload.layout=\"nova\"", "workload.size=2097152"});
    FAIL() << "4 MiB were in 2 MiB";
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()),
              "nova: record 1 of the trace: No space left on device; raise size");
  }
}

TEST(TranslationDriver, RefusesWhatCannotBe) {
  EXPECT_EQ(tested().refusal({}), "no error");
  EXPECT_EQ(of_region().refusal({}), "no error");
  EXPECT_NE(of_region().refusal({"workload.workload=\"varmail\""}).find("remove workload"),
            std::string::npos);
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"workload.layout=\"nova\"", "workload.growth=65536"}, "remove growth"},
      {{"workload.layout=\"ext4\""}, "layout in [workload] must be"},
      {{"workload.cache_ways=3"}, "4096 entries cannot be in 3 ways"},
      {{"matrix.workload=[\"varmai\"]"}, "unknown trace 'varmai'"},
      {{"timeline.interval_us=100"}, "not recorded over time"},
  };
  for (const auto& [changes, what] : wrong) {
    EXPECT_NE(tested().refusal(changes).find(what), std::string::npos) << tested().refusal(changes);
  }
}

TEST(TranslationDriver, PlansItsExperiments) {
  for (const char* name : {"filemr-translations", "filemr-registration", "filemr-fragmented"}) {
    const auto experiment = harness::load_experiment(
        fmt::format("{}/experiments/{}.toml", PERDURA_SOURCE_DIR, name), tested().declarations());
    EXPECT_GE(
        plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), TranslationDriver(), 1)
            .size(),
        8U);
  }
}

}  // namespace
}  // namespace perdura::bench
