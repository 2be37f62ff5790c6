// Tapes, and how those of failing runs are made simpler.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "explore/generated_run.h"
#include "explore/shrink.h"
#include "platform/base/error.h"
#include "platform/pmem/model/tape.h"

namespace perdura::explore::test {
namespace {

using pmem::Tape;

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

TEST(Tape, DrawsAnewWhatIsNotRecorded) {
  const auto drawn = [](std::uint64_t seed) {
    Tape tape(Tape::Streams{{"clients", {5, Tape::kAnew, 7}}}, seed);
    for (int i = 0; i < 4; ++i) tape.stream("clients").choose(1000);
    tape.stream("stalls").choose(1000);
    return tape.drawn();
  };
  const Tape::Streams first = drawn(1);
  EXPECT_EQ(first.at("clients")[0], 5U);
  EXPECT_EQ(first.at("clients")[2], 7U);
  EXPECT_EQ(drawn(1), first);
  const Tape::Streams other = drawn(2);
  EXPECT_NE(other.at("clients")[1], first.at("clients")[1]);
  EXPECT_NE(other.at("clients")[3], first.at("clients")[3]);
  EXPECT_NE(other.at("stalls"), first.at("stalls"));
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
             fails, {1000});
  EXPECT_EQ(shrunk.tape.at("times"), (std::vector<std::uint64_t>{0, 0, 17, 0}));
  EXPECT_TRUE(shrunk.tape.at("other").empty());
  const auto& kinds = shrunk.tape.at("kinds");
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), 2), 1);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), 0), 4);
}

TEST(Shrink, LeavesOutWholeClientsFirst) {
  // Either of two clients suffices, or a loss of lines.
  const auto fails = [](const Tape::Streams& tape) {
    return pmem::to_string(tape).find("client-") != std::string::npos ||
           pmem::to_string(tape).find("image-") != std::string::npos;
  };
  const Shrunk shrunk =
      shrink({{"client-0", {1, 1}}, {"client-1", {1, 1}}, {"image-1", {1, 1, 1}}}, fails, {1000});
  EXPECT_TRUE(shrunk.tape.at("client-0").empty());
  EXPECT_TRUE(shrunk.tape.at("client-1").empty());
  const auto& image = shrunk.tape.at("image-1");
  EXPECT_EQ(std::accumulate(image.begin(), image.end(), std::uint64_t{0}), 1U);
}

// What is left out may not make the failure come too late.
TEST(Shrink, LeavesOutOperationsBeforeTheFailure) {
  // Fails if exactly the operations before the failure have happened, among them one of kind 3.
  const auto fails = [](const Tape::Streams& tape) {
    std::vector<std::uint64_t> kinds = tape.at("client-0");
    std::erase(kinds, 0);
    const auto& failure = tape.at("failure-1");
    return failure.size() > kTriggerOfFailure && failure[kTriggerOfFailure] == 2 * kinds.size() &&
           std::count(kinds.begin(), kinds.end(), 3) > 0;
  };
  const Shrunk shrunk =
      shrink({{"client-0", {1, 2, 1, 3, 2, 1}}, {"failure-1", {1, 0, 12, 0, 700}}}, fails, {1000});
  EXPECT_EQ(pmem::to_string(shrunk.tape), "client-0 0*3 3; failure-1 0 0 2");
}

TEST(Shrink, EndsAfterTheGivenNumberOfRuns) {
  std::uint64_t runs = 0;
  const Shrunk shrunk = shrink({{"times", std::vector<std::uint64_t>(100, 1'000'000)}},
                               [&](const Tape::Streams&) {
                                 ++runs;
                                 return false;
                               },
                               {50});
  EXPECT_EQ(shrunk.runs, 50U);
  EXPECT_EQ(runs, 50U);
  EXPECT_FALSE(shrunk.stopped);
}

TEST(Shrink, EndsWithWhatItHasWhenItIsToldTo) {
  std::uint64_t runs = 0;
  const auto fails = [&](const Tape::Streams& tape) {
    ++runs;
    return !tape.at("times").empty() && tape.at("times")[0] >= 17;
  };
  const auto stop = [&] { return runs == 5; };
  const Shrunk shrunk = shrink({{"times", {1'000'000}}, {"other", {4, 4}}}, fails, {1000, stop});
  EXPECT_TRUE(shrunk.stopped);
  EXPECT_EQ(runs, 5U);
  EXPECT_TRUE(shrunk.tape.at("other").empty());
  EXPECT_GT(shrunk.tape.at("times")[0], 17U);
  EXPECT_LT(shrunk.tape.at("times")[0], 1'000'000U);
}

// What clients do before the other failure, or after it, goes with it.
TEST(Shrink, LeavesOutAFailureWithItsEpoch) {
  constexpr std::size_t kOnce = 1;
  constexpr std::size_t kOfEpoch = 4;
  // Fails if a client chooses 7 behind the last of one or more failures.
  const auto fails = [](const Tape::Streams& tape) {
    std::size_t failures = 0;
    for (const char* const name : {"failure-1", "failure-2"}) {
      const auto& failure = tape.at(name);
      if (!failure.empty() && failure.front() != 0) ++failures;
    }
    const auto& client = tape.at("client-0");
    const std::size_t begin = kOnce + failures * kOfEpoch;
    return failures > 0 && client.size() >= begin + kOfEpoch &&
           std::count(client.begin() + static_cast<std::ptrdiff_t>(begin),
                      client.begin() + static_cast<std::ptrdiff_t>(begin + kOfEpoch), 7) == 1;
  };
  const Shrunk shrunk = shrink({{"client-0", {1, 2, 3, 2, 3, 2, 3, 2, 3, 2, 7, 2, 3}},
                                {"failure-1", {1, 0, 3}},
                                {"failure-2", {2, 0, 5}}},
                               fails, {1000});
  EXPECT_EQ(pmem::to_string(shrunk.tape), "client-0 0*6 7; failure-1 1");
}

// A shorter run fails at another moment, which does not follow from the one before.
TEST(Shrink, LooksForOtherTimesOfAShorterRun) {
  const auto operations = [](const Tape::Streams& tape) {
    const auto& client = tape.at("client-0");
    return static_cast<std::uint64_t>(
        std::count_if(client.begin(), client.end(), [](std::uint64_t value) { return value > 0; }));
  };
  const auto fails = [&](const Tape::Streams& tape) {
    const std::uint64_t count = operations(tape);
    const auto& failure = tape.at("failure-1");
    return count > 1 && failure.size() == 5 && failure[0] > 0 && failure[2] == count &&
           failure[4] % 7 == count % 7;
  };
  const Shrunk shrunk = shrink(
      {{"client-0", {1, 1, 1, 1, 1, 1, 1}}, {"failure-1", {1, 0, 7, 0, 700}}}, fails, {5000});
  EXPECT_EQ(operations(shrunk.tape), 2U);
}

}  // namespace
}  // namespace perdura::explore::test
