// The locks of several workers of one index, on threads that are simulated and on real ones.
#include "systems/bucket_hash/locks.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <random>

#include "tests/support/interruptions.h"
#include "tests/support/platforms.h"

namespace perdura::systems::bucket_hash {
namespace {

using Held = LockTable::Held;

constexpr std::uint64_t kSameLock = 1024;  // as thing 0

TEST(Locks, TwoThingsMayShareALock) {
  LockTable table(1);
  const Held held(table, std::array<std::uint64_t, 3>{0, 7, kSameLock});
  Held other(table, 8);
  EXPECT_FALSE(other.try_add(0));
  EXPECT_FALSE(other.try_add(7));
  EXPECT_TRUE(other.try_add(9));
}

TEST(Locks, OneMoreIsAddedUnlessAnotherOneHasIt) {
  LockTable table(1);
  Held mine(table, 1);
  {
    const Held others(table, 2);
    EXPECT_FALSE(mine.try_add(2));
  }
  EXPECT_TRUE(mine.try_add(2));
  EXPECT_TRUE(mine.try_add(2)) << "mine already";
  EXPECT_FALSE(Held(table, 3).try_add(2));
}

// On `sim`, where nothing happens at the same time, a lock remembers until when it was held.
TEST(Locks, WaitingTakesVirtualTime) {
  const auto platform = perdura::test::make_platform("sim", 1);
  LockTable table(2);
  Time released{};
  Time taken{};
  Time passed_by{};
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const Held held(table, 5);
    charge(Work::copy, 100'000);
    released = thread.executor.now();
    co_return;
  });
  platform->start(0, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Held other(table, 6);
    passed_by = thread.executor.now();
    EXPECT_FALSE(other.try_add(5));
    const Held held(table, 5);
    taken = thread.executor.now();
    co_return;
  });
  platform->run();
  EXPECT_LT(passed_by, released);
  EXPECT_GE(taken, released);
}

class LocksOnPlatforms : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, LocksOnPlatforms, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& subject) { return subject.param; });

// Workers move units between accounts; now and then one has everything, sees the sum, and makes the
// accounts others, suspending in between.
TEST_P(LocksOnPlatforms, WorkersChangeWhatTheyHaveLockedAndSeeNothingHalfDone) {
  constexpr std::uint32_t kWorkers = 4;
  constexpr std::uint64_t kAccounts = 4;
  constexpr int kOperations = 2000;      // of a worker
  constexpr int kOperationsOfAudit = 4;  // so often that two often want one at once
  struct Bank {
    LockTable table{kWorkers};
    std::uint64_t first = 0;  // of the accounts in use
    std::array<std::int64_t, 64> accounts{};
    std::array<std::atomic<bool>, 64> changing{};
    std::atomic<int> meetings{0};  // of two who change the same
    int audits = 0;
    std::atomic<int> late{0};  // who wanted to audit, but another one did
    bool auditing = false;
  } bank;
  const auto platform = perdura::test::make_platform(GetParam(), 1);
  for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
    platform->start(0, static_cast<fabric::Port>(worker), CompletionMode::polling,
                    [&bank, worker](Thread&) -> Task<> {
                      std::mt19937_64 random(worker);
                      for (int i = 0; i < kOperations; ++i) {
                        if (i % kOperationsOfAudit == 0) {
                          auto inside = co_await bank.table.enter(worker);
                          const int audits = bank.audits;
                          const auto everything = bank.table.upgrade(std::move(inside));
                          if (!everything) {  // another one has it
                            const auto after = co_await bank.table.enter(worker);
                            EXPECT_GT(bank.audits, audits);
                            ++bank.late;
                            continue;
                          }
                          EXPECT_EQ(bank.audits, audits);
                          EXPECT_FALSE(std::exchange(bank.auditing, true));
                          std::int64_t sum = 0;
                          std::array<std::int64_t, kAccounts> moved{};
                          for (std::uint64_t a = 0; a < kAccounts; ++a) {
                            moved[a] = std::exchange(bank.accounts[bank.first + a], 0);
                            sum += moved[a];
                            co_await yield();
                          }
                          EXPECT_EQ(sum, 0);
                          bank.first = (bank.first + kAccounts) % 64;
                          for (std::uint64_t a = 0; a < kAccounts; ++a) {
                            bank.accounts[bank.first + a] = moved[a];
                          }
                          ++bank.audits;
                          bank.auditing = false;
                          continue;
                        }
                        const auto inside = co_await bank.table.enter(worker);
                        EXPECT_FALSE(bank.auditing);
                        const std::array<std::uint64_t, 2> things{
                            bank.first + random() % kAccounts, bank.first + random() % kAccounts};
                        const Held held(bank.table, things);
                        bool met = bank.changing[things[0]].exchange(true);
                        if (things[1] != things[0]) met |= bank.changing[things[1]].exchange(true);
                        if (met) ++bank.meetings;
                        --bank.accounts[things[0]];
                        charge(Work::copy, 100);
                        // Long enough to be met there by who has not locked it.
                        for (int pause = 0; pause < 300; ++pause) __builtin_ia32_pause();
                        ++bank.accounts[things[1]];
                        for (const std::uint64_t thing : things) bank.changing[thing] = false;
                      }
                    });
  }
  const perdura::test::Interruptions interruptions;
  platform->run();
  EXPECT_EQ(bank.meetings, 0);
  EXPECT_EQ(bank.audits + bank.late, kWorkers * kOperations / kOperationsOfAudit);
}

TEST(Locks, WhoEntersWaitsUntilEverythingIsReleased) {
  const auto platform = perdura::test::make_platform("sim", 1);
  LockTable table(2);
  const Time begin{};
  Time entered{};
  Time second{};
  platform->start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
    const auto everything = table.upgrade(co_await table.enter(0));
    EXPECT_TRUE(everything);
    co_await sleep_until(begin + Microseconds(100));
    charge(Work::copy, 100'000);  // released when this is paid
  });
  platform->start(0, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await sleep_until(begin + Microseconds(10));
    auto inside = co_await table.enter(1);
    entered = thread.executor.now();
    const auto everything = table.upgrade(std::move(inside));
    EXPECT_TRUE(everything);
    second = thread.executor.now();
  });
  platform->run();
  EXPECT_GT(entered, begin + Microseconds(101));
  EXPECT_GE(second, entered);
  EXPECT_LT(second, begin + Microseconds(200));
}

}  // namespace
}  // namespace perdura::systems::bucket_hash
