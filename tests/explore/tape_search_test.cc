// Which tapes a soak runs next: mostly variations of those that have reached what few have.
#include "explore/tape_search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace perdura::explore::test {
namespace {

using pmem::Tape;

constexpr std::size_t kClients = 32;
constexpr std::size_t kAlternatives = 1U << 20;

// A tape whose choices are all this one, which no other tape draws by chance.
Tape::Streams marked(std::uint64_t choice) {
  Tape::Streams streams;
  for (std::size_t i = 0; i < kClients; ++i) {
    streams[fmt::format("client-{}", i)] = std::vector<std::uint64_t>(3, choice);
  }
  return streams;
}

Tape::Streams drawn_from(Tape tape) {
  for (std::size_t i = 0; i < kClients; ++i) {
    for (int n = 0; n < 3; ++n) tape.stream(fmt::format("client-{}", i)).choose(kAlternatives);
  }
  return tape.drawn();
}

// Of which marked tape the drawn one is a variation, which changes a few choices at most; 0 if it
// is drawn anew.
std::uint64_t origin_of(const Tape::Streams& drawn, const std::vector<std::uint64_t>& marks) {
  for (const std::uint64_t mark : marks) {
    std::ptrdiff_t alike = 0;
    for (const auto& [name, choices] : drawn) {
      alike += std::count(choices.begin(), choices.end(), mark);
    }
    if (alike > static_cast<std::ptrdiff_t>(3 * kClients / 2)) return mark;
  }
  return 0;
}

constexpr std::uint64_t kFirst = 1000;
constexpr std::uint64_t kSecond = 2000;

std::map<std::uint64_t, std::uint64_t> origins_of(TapeSearch& search, int count) {
  std::map<std::uint64_t, std::uint64_t> origins;
  for (int i = 0; i < count; ++i) {
    ++origins[origin_of(drawn_from(search.next()), {kFirst, kSecond})];
  }
  return origins;
}

// A search, one that does not vary, and the seed.
struct TapeSearches : testing::Test {
  TapeSearches() { RecordProperty("seed", std::to_string(seed)); }
  std::uint64_t seed = perdura::test::random_seed();
  TapeSearch search{seed};
  testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

// Of 200 tapes all are drawn anew, or none is, with a probability below 10^-24.
TEST_F(TapeSearches, DrawSomeTapesAnewAndVaryOthers) {
  origins_of(search, 200);
  EXPECT_EQ(search.fresh(), 200U) << "there was nothing to vary";
  search.learn(marked(kFirst), {1});
  auto origins = origins_of(search, 200);
  EXPECT_GT(origins[0], 0U);
  EXPECT_GT(origins[kFirst], 0U);
  EXPECT_EQ(search.fresh(), 200 + origins[0]);
  EXPECT_EQ(search.varied(), origins[kFirst]);

  TapeSearch steady(seed, false);
  steady.learn(marked(kFirst), {1});
  EXPECT_EQ(origins_of(steady, 200)[0], 200U);
}

TEST_F(TapeSearches, VaryOnlyWhatReachedANewState) {
  search.learn(marked(kFirst), {1, 2});
  search.learn(marked(kSecond), {2, 1});
  auto origins = origins_of(search, 200);
  EXPECT_EQ(origins[kSecond], 0U);
  search.learn(marked(kSecond), {1, 3});
  origins = origins_of(search, 200);
  EXPECT_GT(origins[kSecond], 0U);
  EXPECT_EQ(search.states(), 3U);
}

// Both have been varied equally often when the search has a choice again.
TEST_F(TapeSearches, VaryWhatReachedWhatFewHave) {
  constexpr std::uint64_t kOften = 400;
  for (const bool first_is_rare : {false, true}) {
    TapeSearch one(seed);
    one.learn(marked(kFirst), {1});
    one.learn(marked(kSecond), {2});
    for (std::uint64_t i = 0; i < kOften; ++i) one.learn({}, {first_is_rare ? 2U : 1U});
    auto origins = origins_of(one, 200);
    const std::uint64_t rare = first_is_rare ? kFirst : kSecond;
    EXPECT_GT(origins[rare], 0U);
    EXPECT_EQ(origins[first_is_rare ? kSecond : kFirst], 0U);
    origins_of(one, 2000);
    origins = origins_of(one, 200);
    EXPECT_GT(origins[kFirst], 0U);
    EXPECT_GT(origins[kSecond], 0U);
  }
}

TEST_F(TapeSearches, ChangeSomethingAndRepeatThemselves) {
  TapeSearch again(seed);
  search.learn(marked(kFirst), {1});
  again.learn(marked(kFirst), {1});
  std::map<std::uint64_t, std::uint64_t> unchanged;
  std::uint64_t varied = 0;
  for (int i = 0; i < 200; ++i) {
    const Tape::Streams drawn = drawn_from(search.next());
    EXPECT_EQ(drawn_from(again.next()), drawn);
    if (origin_of(drawn, {kFirst}) == 0) continue;
    ++varied;
    unchanged[kFirst] += drawn == marked(kFirst) ? 1 : 0;
  }
  // One variation is the same only if a stream is taken from the tape itself.
  EXPECT_LT(2 * unchanged[kFirst], varied) << varied << " variations";
}

}  // namespace
}  // namespace perdura::explore::test
