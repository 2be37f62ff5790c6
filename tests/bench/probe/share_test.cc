// Rates of several threads: what they did together, over the time in which they did it.
#include <gtest/gtest.h>

#include "bench/probe/memory_probes.h"
#include "bench/probe/rdma_probes.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

using Words = std::vector<std::uint64_t>;

Share share(std::int64_t begin_ns, std::int64_t end_ns, double amount) {
  return {Time(Nanoseconds(begin_ns)), Time(Nanoseconds(end_ns)), amount};
}

// Three threads that share a core: each does 40 operations a microsecond while it runs.
TEST(Share, OfThreadsThatTakeTurnsHasTheRateOfOne) {
  Share together;
  for (const int turn : {1, 0, 2}) together.add(share(1000 * turn, 1000 * (turn + 1), 40));
  EXPECT_DOUBLE_EQ(together.per_nanosecond(), 0.040);
}

TEST(Share, OfThreadsThatRunAtTheSameTimeHasTheSumOfTheirRates) {
  Share together;
  for (int i = 0; i < 3; ++i) together.add(share(500, 1500, 40));
  EXPECT_DOUBLE_EQ(together.per_nanosecond(), 0.120);
}

TEST(Share, ThatNobodyDidHasNoRate) { EXPECT_EQ(Share().per_nanosecond(), 0); }

// Brings what each process says to the last one.
class Processes {
 public:
  Gather of_one() {
    return [this](const Words& words) {
      words_.push_back(words);
      return std::vector<Words>{};
    };
  }
  Gather of_last() {
    return [this](const Words& words) {
      words_.push_back(words);
      return words_;
    };
  }

 private:
  std::vector<Words> words_;
};

TEST(Share, OfSeveralProcessesIsPutTogetherByTheirClock) {
  Processes processes;
  const std::vector<Share> first{share(0, 1000, 40), share(5000, 6000, 40)};
  const std::vector<Share> second{share(1000, 2000, 40), share(5000, 6000, 40)};
  EXPECT_TRUE(gather_shares(first, 7, processes.of_one()).empty());
  const std::vector<Share> both = gather_shares(second, 7, processes.of_last());
  ASSERT_EQ(both.size(), 2U);
  EXPECT_DOUBLE_EQ(both[0].per_nanosecond(), 0.040) << "one after the other";
  EXPECT_DOUBLE_EQ(both[1].per_nanosecond(), 0.080) << "at the same time";
}

// Their times have nothing in common; a barrier has let them begin.
TEST(Share, OfHostsWithTheirOwnClocksBeganTogether) {
  Processes processes;
  gather_shares(std::vector{share(0, 1000, 40)}, 7, processes.of_one());
  gather_shares(std::vector{Share()}, 8, processes.of_one());  // has no thread that works
  const auto all = gather_shares(std::vector{share(900'000, 902'000, 80)}, 9, processes.of_last());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_DOUBLE_EQ(all[0].per_nanosecond(), 0.060);
}

// A core's instructions are what bounds it, whoever gives them.
TEST(Share, ThreadsOnOneCoreAreNoFasterThanOne) {
  sim::Profile profile = sim::load_profile(perdura::test::profile_path("continuity-connectx5"));
  profile.client.cores = profile.server.cores = 1;
  const Effort effort = Effort::of(true, 1, true);
  const auto rate = [&](std::uint32_t threads) {
    const RdmaLoad load{
        .metric = RdmaMetric::rate, .inlined = true, .depth = 16, .threads = threads};
    sim::SimPlatform platform(profile, load.nodes());
    return rdma(platform, load, effort).at(0);
  };
  const auto loads = [&](std::uint32_t threads) {
    sim::SimPlatform platform(profile, 1);
    return bandwidth(platform, pmem::Medium::dram, {.size = 64, .threads = threads}, effort).at(0);
  };
  const double one = rate(1);
  const double one_of_loads = loads(1);
  for (const std::uint32_t threads : {2U, 3U, 8U}) {
    // One thread waits at times while its operations are under way; another one then has the core.
    const double post = static_cast<double>(profile.cpu.post.count()) * 1e-3;
    EXPECT_LE(rate(threads), std::max(one, 1e3 / post)) << threads;
    EXPECT_LE(loads(threads), one_of_loads * 1.001) << threads;
  }
}

}  // namespace
}  // namespace perdura::bench
