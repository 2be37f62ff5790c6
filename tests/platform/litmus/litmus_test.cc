// Every litmus test of the catalog: in every order on `sim`, and many times on `shm` and, where
// there is a device, on `verbs`.
#include "platform/litmus/litmus.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "platform/litmus/catalog.h"
#include "platform/litmus/explore.h"
#include "platform/litmus/survey.h"
#include "platform/shm/shm_platform.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#ifdef PERDURA_HAVE_VERBS
#include "platform/base/error.h"
#include "platform/verbs/verbs_platform.h"
#endif

namespace perdura::litmus {
namespace {

sim::Profile testbed() {
  sim::Profile profile = test::erda_testbed();
  profile.nic.flush = profile.nic.atomic_write = true;
  return profile;
}

std::string listed(const Litmus& litmus, const Results& results) {
  std::string text = fmt::format("{}: \"{}\"\n", litmus.where, litmus.title);
  for (const auto& [result, times] : results) {
    text += fmt::format("  {} ({} times)\n", to_string(litmus, result), times);
  }
  return text;
}

std::string text_of(const Outcome* outcome) { return outcome == nullptr ? "" : outcome->text; }

RunOptions with_pauses(std::uint64_t times) {
  RunOptions options;
  options.times = times;
  options.longest_pause = Microseconds(4);
  return options;
}

// On platforms whose times are real: PERDURA_LITMUS_RUNS=1000000 for more.
std::uint64_t many_times() {
  const char* const given = std::getenv("PERDURA_LITMUS_RUNS");
  return given == nullptr ? 300 : std::strtoull(given, nullptr, 10);
}

std::string page() {
  std::ifstream in(PERDURA_SOURCE_DIR "/docs/memory-model.md");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Results run_on(Platform& platform, const Litmus& litmus, std::uint64_t times) {
  return Run(litmus, platform, with_pauses(times)).finish();
}

// As the program does it.
Results timed(const Litmus& litmus) {
  sim::SimPlatform platform(testbed(), litmus.nodes);
  return run_on(platform, litmus, 1000);
}

// What people read on a terminal has no signs of Markdown, and all that the page's table has.
TEST(LitmusTable, IsPlainTextOnATerminal) {
  for (const Litmus& each : catalog()) {
    std::vector<std::uint64_t> times(each.outcomes.size());
    times.front() = 7;
    const std::string text = plain_table(each, {{"sim", times, true}, {"verbs", {}}});
    for (const char* sign : {"|", "**", "`", "<br>", "---"}) {
      if (each.title.find(sign) == std::string::npos) {
        EXPECT_EQ(text.find(sign), std::string::npos) << sign << " in\n" << text;
      }
    }
    EXPECT_TRUE(text.starts_with(each.title + " (")) << text;
    for (const Outcome& outcome : each.outcomes) {
      EXPECT_NE(text.find("\n  " + outcome.text + " "), std::string::npos) << text;
    }
    EXPECT_NE(text.find(" 7"), std::string::npos) << text;
    EXPECT_NE(text.find("not run"), std::string::npos) << text;
  }
}

class EveryLitmus : public testing::TestWithParam<std::size_t> {
 protected:
  const Litmus& litmus() const { return catalog()[GetParam()]; }

  void expect_nothing_forbidden(const Results& results) const {
    EXPECT_EQ(text_of(forbidden_in(litmus(), times_in(litmus(), results))), "")
        << listed(litmus(), results);
  }
  // In one piece, but for what is behind each row: what was seen on shm.
  static void expect_on_page(const std::string& table) {
    const std::string text = page();
    std::istringstream rows(table);
    std::string row;
    std::getline(rows, row);
    std::size_t at = text.find(row);
    do {
      ASSERT_TRUE(at < text.size() && text.compare(at, row.size(), row) == 0)
          << "docs/memory-model.md has no row\n"
          << row << "\n('perdura litmus' prints the table)";
      at = text.find('\n', at) + 1;
    } while (std::getline(rows, row));
  }
  void expect_all_in(const Results& all, const Results& some) const {
    for (const auto& [result, times] : some) {
      EXPECT_TRUE(all.contains(result)) << to_string(litmus(), result) << "\n"
                                        << listed(litmus(), all);
    }
  }
};

TEST_P(EveryLitmus, OnSimHasWhatIsAllowedAndNothingElse) {
  const Explored explored = explore(litmus(), testbed());
  RecordProperty("runs", std::to_string(explored.runs));
  RecordProperty("states", std::to_string(explored.states));
  const Results& all = explored.results;
  expect_nothing_forbidden(all);
  EXPECT_EQ(text_of(missing_in(litmus(), times_in(litmus(), all))), "") << listed(litmus(), all);

  // At random, and with times, the order is one of those: none was left out.
  expect_all_in(all, sample(litmus(), testbed(), 200, 1));
  const Results with_times = timed(litmus());
  expect_all_in(all, with_times);

  expect_on_page(table_rows(litmus(), {{"sim", times_in(litmus(), with_times)},
                                       {"sim, every order", times_in(litmus(), all)}}));
}

TEST_P(EveryLitmus, OnShmHasNothingForbidden) {
  ShmOptions options;
  options.node_count = litmus().nodes;
  ShmPlatform platform(std::move(options));
  expect_nothing_forbidden(run_on(platform, litmus(), many_times()));
}

#ifdef PERDURA_HAVE_VERBS
TEST_P(EveryLitmus, OnVerbsHasNothingForbidden) {
  try {
    const fabric::Capabilities can = fabric::verbs::Device({}).capabilities();
    if ((litmus().needs_flush && !can.flush) ||
        (litmus().needs_atomic_write && !can.atomic_write)) {
      GTEST_SKIP() << "the device lacks what the test needs";
    }
  } catch (const PlatformError& error) {
    GTEST_SKIP() << error.what();
  }
  VerbsOptions options;
  options.node_count = litmus().nodes;
  VerbsPlatform platform(std::move(options));
  expect_nothing_forbidden(run_on(platform, litmus(), many_times()));
}
#endif

std::string name_of(const testing::TestParamInfo<std::size_t>& info) {
  std::string name = catalog()[info.param].where;
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Catalog, EveryLitmus, testing::Range<std::size_t>(0, catalog().size()),
                         name_of);

}  // namespace
}  // namespace perdura::litmus
