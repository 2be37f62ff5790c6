// Probabilistic concurrency testing finds bugs as often as it promises.
#include "platform/explore/pct.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace perdura::explore::test {
namespace {

// The order in which the steps of threads of these lengths come: "aabab".
std::string order_of(const std::vector<std::size_t>& lengths, pmem::Choices& choices) {
  std::string order;
  std::vector<std::size_t> left = lengths;
  while (true) {
    std::vector<pmem::NextStep> steps;
    for (std::size_t thread = 0; thread < left.size(); ++thread) {
      if (left[thread] > 0) steps.push_back({thread});
    }
    if (steps.empty()) return order;
    const auto thread = static_cast<std::size_t>(steps[choices.choose_step(steps)].agent);
    --left[thread];
    order += static_cast<char>('a' + thread);
  }
}

// Where in an order the step of a thread with this number (from 1) is.
std::size_t place(const std::string& order, char thread, int number) {
  std::size_t at = order.find(thread);
  while (--number > 0) at = order.find(thread, at + 1);
  return at;
}

struct Planted {
  std::uint32_t depth;
  std::vector<std::size_t> threads;
  std::function<bool(const std::string& order)> happens;
};

// Bugs that need so many conditions on the order of two steps, no fewer.
const std::vector<Planted>& bugs() {
  static const std::vector<Planted> all{
      // The last thread begins before all others.
      {1, {4, 4, 4, 4}, [](const std::string& order) { return order[0] == 'd'; }},
      // All of b comes between two certain steps of a.
      {2,
       {10, 2, 5},
       [](const std::string& order) {
         return place(order, 'a', 7) < place(order, 'b', 1) &&
                place(order, 'b', 2) < place(order, 'a', 8);
       }},
      // b begins between two certain steps of a, which then has two more before b goes on.
      {3,
       {8, 3},
       [](const std::string& order) {
         return place(order, 'a', 4) < place(order, 'b', 1) &&
                place(order, 'b', 1) < place(order, 'a', 5) &&
                place(order, 'a', 6) < place(order, 'b', 2);
       }},
  };
  return all;
}

// Whether a bug that each run finds with a probability of at least p would be found so rarely in n
// runs with a probability of at most e^-18 (Chernoff: below (1 - x) n p with e^(-x^2 n p / 2)).
bool too_rare(std::uint64_t found, std::uint64_t n, double p) {
  const double expected = static_cast<double>(n) * p;
  return static_cast<double>(found) < expected - 6 * std::sqrt(expected);
}

TEST(Pct, FindsABugOfItsDepthWithTheStatedProbability) {
  constexpr std::uint64_t kRuns = 20'000;
  const std::uint64_t seed = perdura::test::random_seed();
  for (const Planted& bug : bugs()) {
    SCOPED_TRACE(testing::Message() << "depth " << bug.depth << ", seed " << seed);
    Pct pct(seed, bug.depth, kRuns);
    std::uint64_t found = 0;
    while (pct.next()) found += bug.happens(order_of(bug.threads, pct)) ? 1 : 0;
    EXPECT_EQ(pct.agents(), bug.threads.size());
    std::size_t steps = 0;
    for (const std::size_t length : bug.threads) steps += length;
    EXPECT_EQ(pct.choices(), steps);
    EXPECT_DOUBLE_EQ(pct.probability(), 1 / (static_cast<double>(bug.threads.size()) *
                                             std::pow(static_cast<double>(steps), bug.depth - 1)));
    // Enough runs for the bound to mean something.
    ASSERT_GT(kRuns * pct.probability(), 50);
    EXPECT_FALSE(too_rare(found, kRuns, pct.probability()))
        << found << " of " << kRuns << " runs, promised " << pct.probability();
  }
}

// With too small a depth the threads change places too seldom.
TEST(Pct, DoesNotFindABugOfMoreDepth) {
  const Planted& bug = bugs().back();
  Pct pct(1, bug.depth - 1, 5000);
  while (pct.next()) EXPECT_FALSE(bug.happens(order_of(bug.threads, pct)));
}

// Alternatives that are no steps: two certain ones of sixty must be taken.
TEST(Pct, FindsDeviationsWithTheStatedProbability) {
  constexpr std::uint64_t kRuns = 200'000;
  constexpr std::size_t kChoices = 20;
  constexpr std::size_t kAlternatives = 4;
  const std::uint64_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Pct pct(seed, 3, kRuns);
  std::uint64_t found = 0;
  while (pct.next()) {
    std::vector<std::size_t> taken;
    for (std::size_t i = 0; i < kChoices; ++i) taken.push_back(pct.choose(kAlternatives));
    found += taken[3] == 2 && taken[17] == 1 ? 1 : 0;
  }
  EXPECT_EQ(pct.choices(), kChoices * (kAlternatives - 1));
  ASSERT_GT(kRuns * pct.probability(), 50);
  EXPECT_FALSE(too_rare(found, kRuns, pct.probability()))
      << found << " of " << kRuns << " runs, promised " << pct.probability();
}

}  // namespace
}  // namespace perdura::explore::test
