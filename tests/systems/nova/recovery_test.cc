// A power failure at every moment of random operations, and of recovery from the death of a process
// during them: what is found is the state before or after the operation that was interrupted.
#include <gtest/gtest.h>

#include "platform/sim/sim_platform.h"
#include "systems/nova/nova.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/explore.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::systems::nova {
namespace {

using fs::test::RandomOperations;

// What operations have done up to the moment.
struct Progress {
  fs::Model before;
  fs::Model after;
  bool has_returned = true;
};

fs::FsConfig config() { return fs::test::config_of(kNova, true); }

// Calls `interrupt` when so many operations are done, and goes on with `more`.
Task<> operate(Thread& thread, std::uint64_t seed, int done, std::function<void()> interrupt,
               int more, Progress& progress) {
  RandomOperations operations(thread, kNova, config(), seed);
  co_await operations.begin();
  for (int i = 0; i < done; ++i) co_await operations.step();
  progress.before = progress.after = operations.model();
  co_await sleep_for(Nanoseconds(1));
  interrupt();
  for (int i = 0; i < more; ++i) {
    progress.before = progress.after;
    progress.has_returned = false;
    co_await operations.step();
    progress.after = operations.model();
    // What the operation has done takes until then.
    co_await sleep_for(Nanoseconds(1));
    progress.has_returned = true;
  }
}

Task<> recover(Thread& thread, const Progress& progress, bool& recovered) {
  const auto files = co_await kNova.mount(thread, "home", config());
  co_await sleep_for(Nanoseconds(1));  // what mounting has done takes until then
  recovered = true;
  const std::string audit = co_await files->audit();
  EXPECT_EQ(audit, "");
  const auto session = files->attach(thread);
  const fs::TreeOptions options{.times = true, .holes = true};
  const fs::Tree found = co_await fs::read_tree(*session, options);
  const std::string other = difference(found, fs::tree_of(progress.after, options));
  if (!other.empty()) {
    EXPECT_FALSE(progress.has_returned) << other;
    EXPECT_EQ(difference(found, fs::tree_of(progress.before, options)), "") << "nor " << other;
  }
}

TEST(NovaRecovery, FindsTheStateBeforeOrAfterTheOperation) {
  const std::uint32_t seed = perdura::test::random_seed();
  for (std::uint32_t run = 0; run < 3 && !HasFailure(); ++run) {
    SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed + run);
    const auto scenario = [&](sim::Failure& failure) {
      SCOPED_TRACE(failure.text());
      sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
      platform.track_durability({pmem::PersistenceDomain::dmp, false});
      failure.enable(false);
      Progress progress;
      bool recovered = false;
      platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) {
        return operate(
            thread, seed + run, 120, [&] { failure.enable(true); }, 12, progress);
      });
      failure.watch(platform, [&](pmem::Choices& choices) {
        platform.fail_power(0, choices);
        progress.before.end_holds();
        progress.after.end_holds();
        platform.start(0, 0, CompletionMode::polling,
                       [&](Thread& thread) { return recover(thread, progress, recovered); });
      });
      platform.run();
      EXPECT_EQ(failure.happened(), recovered);
    };
    for (const sim::Images images : {sim::Images::least, sim::Images::most, sim::Images::random}) {
      const sim::Explored explored =
          perdura::test::explore_until_failure({.images = images, .seed = run + 1}, scenario);
      RecordProperty("moments", static_cast<int>(explored.crash_points));
      EXPECT_TRUE(HasFailure() || explored.tried > 10);
      if (HasFailure()) break;
    }
  }
}

// What a process that has died leaves may be in caches only, also what recovery builds upon. The
// process dies within one of the operations; the power fails at a moment of recovery.
TEST(NovaRecovery, FromADeathMayBeInterruptedByAPowerFailure) {
  const std::uint32_t seed = perdura::test::random_seed();
  constexpr std::uint32_t kDeaths = 200;
  for (std::uint32_t death = 0; death < kDeaths && !HasFailure(); ++death) {
    SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed << ", death " << death);
    const auto scenario = [&](sim::Failure& failure) {
      SCOPED_TRACE(failure.text());
      sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
      platform.track_durability({pmem::PersistenceDomain::dmp, false});
      failure.enable(false);
      Progress progress;
      bool recovered = false;
      const auto start_again = [&] {
        progress.before.end_holds();
        progress.after.end_holds();
        platform.start(0, 0, CompletionMode::polling,
                       [&](Thread& thread) { return recover(thread, progress, recovered); });
      };
      const auto die_soon = [&] {
        platform.at(platform.engine().now() + Nanoseconds(100 * death), [&] {
          platform.kill(0);
          failure.enable(true);
          start_again();
        });
      };
      platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) {
        return operate(thread, seed + death, 20, die_soon, 1000, progress);
      });
      failure.watch(
          platform,
          [&](pmem::Choices& choices) {
            platform.fail_power(0, choices);
            start_again();
          },
          [&] { return !recovered; });
      platform.run();
      EXPECT_TRUE(recovered);
    };
    for (const sim::Images images : {sim::Images::least, sim::Images::random}) {
      const sim::Explored explored =
          perdura::test::explore_until_failure({.images = images, .seed = death + 1}, scenario);
      RecordProperty("moments", static_cast<int>(explored.crash_points));
      RecordProperty("runs", static_cast<int>(explored.runs));
      EXPECT_TRUE(HasFailure() || explored.tried > 0);
      if (HasFailure()) break;
    }
  }
}

}  // namespace
}  // namespace perdura::systems::nova
