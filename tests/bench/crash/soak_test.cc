// Generated histories of systems: that they find what is known to be lost, that what they find is
// simple and can be repeated, and that no system keeps less than the table of guarantees says.
#include "bench/crash/soak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bench/crash/shrink.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::bench::test {
namespace {

using pmem::Tape;
using services::GuaranteeLevel;

const sim::Profile& soaked_testbed() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

// The case of this name with another expectation than the table's.
SoakCase case_of(std::string_view system, std::string_view setting, std::string_view server,
                 GuaranteeLevel expected) {
  for (SoakCase one : soak_cases({systems::find_system(system).value()})) {
    if (one.setting.name != setting || explored_name(one.model) != server) continue;
    one.expected = expected;
    return one;
  }
  ADD_FAILURE() << system << " has no setting " << setting << " on " << server;
  return {};
}

// The finding of the first seed that has one.
SoakFinding first_finding(const SoakCase& one) {
  constexpr std::uint64_t kSeeds = 20'000;
  std::uint32_t failures = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (auto found = soak(one, soaked_testbed(), seed, failures)) return *std::move(found);
  }
  ADD_FAILURE() << "nothing was found with " << kSeeds << " seeds";
  return {};
}

// Operations before the inspector's, which are the same in every run.
std::size_t operations_of_clients(const std::string& trace) {
  const std::size_t inspector = trace.find("comes after recovery");
  std::size_t count = 0;
  for (std::size_t at = 0; (at = trace.find("by client", at)) < inspector; ++at) ++count;
  return count;
}

// What a get has returned can be lost: Erda's put is acknowledged by its own client alone.
TEST(Soak, FindsThatAReaderOfErdaSeesWhatIsLost) {
  const SoakFinding found =
      first_finding(case_of("erda", "persistence = correct", "dmp ddio", GuaranteeLevel::durable));
  EXPECT_EQ(found.run.kept, GuaranteeLevel::durable_writes) << found.text();
  EXPECT_NE(found.run.loss.find("get of version"), std::string::npos) << found.text();
  EXPECT_LE(operations_of_clients(found.run.loss), 10U) << found.text();
}

TEST(Soak, FindsThatErdaAsPublishedLosesAKey) {
  const SoakFinding found = first_finding(case_of("erda", "", "dmp ddio", GuaranteeLevel::ordered));
  EXPECT_LT(found.run.kept, GuaranteeLevel::ordered) << found.text();
  EXPECT_LE(operations_of_clients(found.run.loss), 10U) << found.text();
}

TEST(Soak, AFindingIsRepeatedByItsTape) {
  const SoakFinding found = first_finding(case_of("erda", "", "dmp ddio", GuaranteeLevel::ordered));
  Tape tape = Tape::parse(found.tape);
  const SoakRun again = run_once(found.where, soaked_testbed(), tape);
  EXPECT_EQ(again.kept, found.run.kept);
  EXPECT_EQ(again.loss, found.run.loss);
  EXPECT_EQ(again.events, found.run.events);
}

// Each run of a seed is the same, whatever ran before it.
TEST(Soak, ASeedDecidesARun) {
  const SoakCase one = case_of("redo-logging", "", "mhp ddio", GuaranteeLevel::durable);
  const auto drawn = [&](std::uint64_t seed) {
    Tape tape(seed);
    run_once(one, soaked_testbed(), tape);
    return tape.text();
  };
  const std::string first = drawn(7);
  EXPECT_NE(drawn(8), first);
  EXPECT_EQ(drawn(7), first);
}

class SoakOfSystem : public testing::TestWithParam<services::ServedSystem> {};

TEST_P(SoakOfSystem, KeepsWhatTheTableSays) {
  constexpr std::uint64_t kSeeds = 40;
  const std::uint64_t first = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << first);
  std::uint32_t failures = 0;
  for (const SoakCase& one : soak_cases({GetParam()})) {
    for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
      const auto found = soak(one, soaked_testbed(), seed, failures);
      ASSERT_FALSE(found) << found->text() << found->tape;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, SoakOfSystem, testing::ValuesIn(systems::all_systems()),
                         [](const auto& one) {
                           std::string name(one.param.info.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// --- tapes ---------------------------------------------------------------------------------------

TEST(Tape, TextHoldsAllChoices) {
  Tape tape(5);
  for (const std::size_t alternatives : {1000, 3, 7}) {
    tape.stream("clients").choose(alternatives);
    tape.stream("image-2").choose(alternatives);
  }
  const Tape::Streams drawn = tape.drawn();
  Tape again = Tape::parse(tape.text());
  for (const std::size_t alternatives : {1000, 3, 7}) {
    again.stream("clients").choose(alternatives);
    again.stream("image-2").choose(alternatives);
  }
  EXPECT_EQ(again.drawn(), drawn);
}

TEST(Tape, ReplaysTheFirstAlternativeBehindItsEnd) {
  Tape tape = Tape::parse("clients 5");
  EXPECT_EQ(tape.stream("clients").choose(10), 5U);
  EXPECT_EQ(tape.stream("clients").choose(10), 0U);
  EXPECT_EQ(tape.stream("stalls").choose(10), 0U);
}

TEST(Tape, LimitsChoicesToTheAlternativesThatThereAre) {
  Tape tape = Tape::parse("clients 5 9");
  EXPECT_EQ(tape.stream("clients").choose(3), 2U);
  EXPECT_EQ(tape.stream("clients").choose(10), 9U);
}

TEST(Tape, NamesTheWordThatIsWrong) {
  try {
    Tape::parse("clients 5 x; stalls 1");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("'x'"), std::string::npos) << error.what();
  }
}

// --- shrinking -----------------------------------------------------------------------------------

TEST(Shrink, LeavesOnlyWhatTheFailureNeeds) {
  // Fails if the third choice of a stream is at least 17 and any of another stream is 2.
  const auto fails = [](const Tape::Streams& tape) {
    const auto& times = tape.at("times");
    const auto& kinds = tape.at("kinds");
    return times.size() > 2 && times[2] >= 17 &&
           std::find(kinds.begin(), kinds.end(), 2) != kinds.end();
  };
  const Shrunk shrunk =
      shrink({{"times", {900, 800, 700, 600}}, {"kinds", {1, 2, 2, 1, 2}}, {"other", {4, 4}}},
             fails, 1000);
  EXPECT_EQ(shrunk.tape.at("times"), (std::vector<std::uint64_t>{0, 0, 17, 0}));
  EXPECT_EQ(shrunk.tape.at("other"), (std::vector<std::uint64_t>{0, 0}));
  const auto& kinds = shrunk.tape.at("kinds");
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), 2), 1);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), 0), 4);
}

TEST(Shrink, EndsAfterTheGivenNumberOfRuns) {
  std::uint64_t runs = 0;
  const Shrunk shrunk = shrink(
      {{"times", std::vector<std::uint64_t>(100, 1'000'000)}},
      [&](const Tape::Streams&) { return ++runs % 2 == 0; }, 50);
  EXPECT_EQ(shrunk.runs, 50U);
  EXPECT_EQ(runs, 50U);
}

}  // namespace
}  // namespace perdura::bench::test
