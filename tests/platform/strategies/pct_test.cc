// Probabilistic concurrency testing finds bugs as often as it promises. A run's draws are few, so
// all of them are enumerated and counted: no run is random, and no tolerance is needed.
#include "platform/strategies/pct.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace perdura::strategies::test {
namespace {

// A step of one thread, numbered from 0, comes before a step of another.
struct Condition {
  std::size_t thread = 0;
  std::size_t step = 0;
  std::size_t later_thread = 0;
  std::size_t later_step = 0;
};

// Threads of so many steps each. A thread may begin only behind a step of another one.
struct Threads {
  std::vector<std::size_t> lengths;
  std::vector<Condition> starts;  // of `later_thread`, whose `later_step` is 0

  std::size_t steps() const {
    std::size_t sum = 0;
    for (const std::size_t length : lengths) sum += length;
    return sum;
  }
};

// The order in which the steps come, as their threads: 0 0 1 0 1.
using Order = std::vector<std::size_t>;

Order order_of(const Threads& threads, pmem::Choices& choices) {
  Order order;
  std::vector<std::size_t> done(threads.lengths.size());
  const auto may_begin = [&](std::size_t thread) {
    return std::none_of(threads.starts.begin(), threads.starts.end(), [&](const Condition& start) {
      return start.later_thread == thread && done[start.thread] <= start.step;
    });
  };
  while (true) {
    std::vector<pmem::NextStep> steps;
    for (std::size_t thread = 0; thread < done.size(); ++thread) {
      if (done[thread] < threads.lengths[thread] && may_begin(thread)) steps.push_back({thread});
    }
    if (steps.empty()) return order;
    order.push_back(static_cast<std::size_t>(steps[choices.choose_step(steps)].agent));
    ++done[order.back()];
  }
}

bool holds(const Condition& condition, const Order& order) {
  std::vector<std::size_t> done(order.size());
  for (const std::size_t thread : order) {
    if (thread == condition.thread && done[thread] == condition.step) return true;
    if (thread == condition.later_thread && done[thread] == condition.later_step) return false;
    ++done[thread];
  }
  return false;
}

bool hold(const std::vector<Condition>& conditions, const Order& order) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Condition& condition) { return holds(condition, order); });
}

std::set<Order> all_orders(const Threads& threads) {
  std::set<Order> orders;
  for (pmem::Enumerator all; all.next();) orders.insert(order_of(threads, all));
  return orders;
}

Threads random_threads(pmem::RandomChoices& random) {
  Threads threads;
  for (std::size_t thread = 0, count = 2 + random.choose(2); thread < count; ++thread) {
    threads.lengths.push_back(1 + random.choose(6 / count));
    if (thread == 0 || random.choose(3) > 0) continue;
    const std::size_t before = random.choose(thread);
    threads.starts.push_back({before, random.choose(threads.lengths[before]), thread, 0});
  }
  return threads;
}

Condition random_condition(const Threads& threads, pmem::RandomChoices& random) {
  Condition condition;
  const std::size_t count = threads.lengths.size();
  condition.thread = random.choose(count);
  condition.step = random.choose(threads.lengths[condition.thread]);
  condition.later_thread = (condition.thread + 1 + random.choose(count - 1)) % count;
  condition.later_step = random.choose(threads.lengths[condition.later_thread]);
  return condition;
}

std::string text_of(const Threads& threads, const std::vector<Condition>& conditions) {
  std::string text = "threads of";
  for (const std::size_t length : threads.lengths) text += fmt::format(" {}", length);
  text += " steps";
  const auto add = [&](std::string_view what, const Condition& c) {
    text += fmt::format("; {}step {} of {} before step {} of {}", what, c.step, c.thread,
                        c.later_step, c.later_thread);
  };
  for (const Condition& start : threads.starts) add("always ", start);
  for (const Condition& condition : conditions) add("", condition);
  return text;
}

std::uint64_t power(std::uint64_t base, std::uint32_t exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

// Every sequence of draws has the same probability: k^(d-1) places and n! orders of the agents.
TEST(Pct, FindsEveryBugOfItsDepthWithTheStatedProbability) {
  constexpr std::uint64_t kPrograms = 400;
  constexpr std::uint32_t kMostDepth = 3;
  const std::uint64_t first = perdura::test::random_seed();
  std::uint64_t tight = 0;
  for (std::uint64_t seed = first; seed < first + kPrograms; ++seed) {
    pmem::RandomChoices random(seed);
    const Threads threads = random_threads(random);
    const auto depth = static_cast<std::uint32_t>(1 + seed % kMostDepth);
    std::vector<Condition> bug(depth);
    for (Condition& condition : bug) condition = random_condition(threads, random);
    const std::set<Order> orders = all_orders(threads);
    if (std::none_of(orders.begin(), orders.end(),
                     [&](const Order& order) { return hold(bug, order); })) {
      continue;
    }
    const std::uint64_t n = threads.lengths.size();
    const std::uint64_t k = threads.steps();
    std::uint64_t found = 0;
    pmem::Enumerator draws;
    while (draws.next()) {
      PctRun run(draws, depth, k);
      found += hold(bug, order_of(threads, run)) ? 1 : 0;
      ASSERT_EQ(run.agents(), n);
      ASSERT_EQ(run.choices(), k);
    }
    const std::uint64_t runs = draws.sequences();
    ASSERT_EQ(runs, (n == 2 ? 2U : 6U) * power(k, depth - 1));
    ASSERT_GE(found * n * power(k, depth - 1), runs)
        << text_of(threads, bug) << ": " << found << " of " << runs << " runs, seed " << seed;
    tight += found * n * power(k, depth - 1) == runs ? 1 : 0;
  }
  EXPECT_GT(tight, 0U) << "the bound is that of no bug";
}

// Without changes the threads run one after the other, in all orders of theirs; each change of a
// priority allows one more preemption.
TEST(Pct, DoesNotFindABugOfMoreDepth) {
  const Threads threads{{3, 2, 1}, {}};
  const auto preemptions = [&](const Order& order) {
    std::vector<std::size_t> left = threads.lengths;
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && order[i] != order[i - 1] && left[order[i - 1]] > 0) ++count;
      --left[order[i]];
    }
    return count;
  };
  for (std::uint32_t depth = 1; depth <= 3; ++depth) {
    std::set<Order> orders;
    for (pmem::Enumerator draws; draws.next();) {
      PctRun run(draws, depth, threads.steps());
      orders.insert(order_of(threads, run));
    }
    std::uint32_t most = 0;
    for (const Order& order : orders) most = std::max(most, preemptions(order));
    EXPECT_EQ(most, depth - 1);
    for (const Order& order : all_orders(threads)) {
      EXPECT_TRUE(preemptions(order) > 0 || orders.contains(order));
    }
  }
}

// Alternatives that are no steps; what there is to choose depends on what was chosen before.
std::vector<std::size_t> delays_of(pmem::Choices& choices) {
  std::vector<std::size_t> taken;
  std::size_t sum = 0;
  for (std::size_t i = 0; i < 4 + sum % 2; ++i) {
    taken.push_back(choices.choose(1 + (i + sum) % 3));
    sum += taken.back();
  }
  return taken;
}

std::uint64_t deviations_in(const std::vector<std::size_t>& taken) {
  return taken.size() - static_cast<std::uint64_t>(std::count(taken.begin(), taken.end(), 0U));
}

TEST(Pct, FindsCertainDeviationsWithTheStatedProbability) {
  std::uint64_t k = 0;  // of the longest run
  std::set<std::vector<std::size_t>> all;
  for (pmem::Enumerator every; every.next();) {
    struct Counted final : pmem::Choices {
      explicit Counted(pmem::Choices& its_choices) : choices(its_choices) {}
      std::size_t choose(std::size_t n) override {
        alternatives += n - 1;
        return choices.choose(n);
      }
      pmem::Choices& choices;
      std::uint64_t alternatives = 0;
    } counted(every);
    all.insert(delays_of(counted));
    k = std::max(k, counted.alternatives);
  }
  for (std::uint32_t depth = 1; depth <= 4; ++depth) {
    std::map<std::vector<std::size_t>, std::uint64_t> found;
    pmem::Enumerator draws;
    while (draws.next()) {
      PctRun run(draws, depth, k);
      ++found[delays_of(run)];
      ASSERT_EQ(run.agents(), 0U);
    }
    ASSERT_EQ(draws.sequences(), power(k, depth - 1));
    for (const auto& taken : all) {
      EXPECT_TRUE(deviations_in(taken) != depth - 1 || found.contains(taken)) << depth;
      EXPECT_TRUE(deviations_in(taken) < depth || !found.contains(taken)) << depth;
    }
  }
}

// A strategy's runs are those of random draws: each of them comes, with the n and k of the longest
// run before it, and a seed repeats them.
TEST(Pct, DrawsEveryRun) {
  constexpr std::uint32_t kDepth = 2;
  constexpr std::uint64_t kRuns = 3000;
  const Threads threads{{2, 2, 1}, {}};
  std::set<Order> expected;
  for (pmem::Enumerator draws; draws.next();) {
    PctRun run(draws, kDepth, threads.steps());
    expected.insert(order_of(threads, run));
  }
  const std::uint64_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::set<Order> orders;
  Pct pct(seed, kDepth, kRuns);
  Pct again(seed, kDepth, kRuns);
  while (pct.next()) {
    ASSERT_TRUE(again.next());
    const Order order = order_of(threads, pct);
    EXPECT_EQ(order_of(threads, again), order);
    orders.insert(order);
  }
  EXPECT_EQ(pct.runs(), kRuns);
  EXPECT_EQ(orders, expected);
  EXPECT_EQ(pct.agents(), 3U);
  EXPECT_EQ(pct.choices(), 5U);
  EXPECT_DOUBLE_EQ(pct.probability(), 1.0 / (3 * 5));
  // The rarest of 5 * 3! runs is left out by all of so many with a probability of e^-100.
  static_assert(kRuns / (5 * 6) >= 100);
}

// Where no steps are chosen there is no n.
TEST(Pct, CountsNoAgentsWhereNoStepsAreChosen) {
  Pct pct(1, 3, 10);
  while (pct.next()) {
    for (int i = 0; i < 20; ++i) pct.choose(4);
  }
  EXPECT_EQ(pct.agents(), 0U);
  EXPECT_EQ(pct.choices(), 60U);
  EXPECT_DOUBLE_EQ(pct.probability(), 1.0 / (60 * 60));
}

}  // namespace
}  // namespace perdura::strategies::test
