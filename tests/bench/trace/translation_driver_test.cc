// The driver of translations: the traces that are kept can be replayed, FileMR's ranges need fewer
// entries and hit more often, and what cannot be is refused before anything runs.
#include "bench/trace/translation_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "bench/trace/translation_replay.h"
#include "tests/bench/driver_under_test.h"

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

TEST(TranslationDriver, RefusesWhatCannotBe) {
  EXPECT_EQ(tested().refusal({}), "no error");
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"workload.cache_ways=3"}, "4096 entries cannot be in 3 ways"},
      {{"matrix.workload=[\"varmai\"]"}, "unknown trace 'varmai'"},
      {{"timeline.interval_us=100"}, "not recorded over time"},
  };
  for (const auto& [changes, what] : wrong) {
    EXPECT_NE(tested().refusal(changes).find(what), std::string::npos) << tested().refusal(changes);
  }
}

}  // namespace
}  // namespace perdura::bench
