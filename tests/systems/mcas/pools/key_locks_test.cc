// Locks of keys: who has one, who waits and in which order, and that nothing stays behind.
#include "systems/mcas/key_locks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using test::as_key;

const std::string kKey = "key";
const std::string kOther = "another key";

void run(const std::function<Task<>(Thread&)>& body) {
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, body);
  platform->run();
}

TEST(KeyLocks, AreSharedOrExclusiveByKey) {
  KeyLocks locks;
  {
    const auto shared = locks.try_lock(as_key(kKey), LockMode::shared);
    EXPECT_TRUE(shared);
    EXPECT_TRUE(locks.try_lock(as_key(kKey), LockMode::shared));
    EXPECT_FALSE(locks.try_lock(as_key(kKey), LockMode::exclusive));
    EXPECT_FALSE(locks.allows(as_key(kKey), LockMode::exclusive));
    EXPECT_TRUE(locks.try_lock(as_key(kOther), LockMode::exclusive));
  }
  {
    auto exclusive = locks.try_lock(as_key(kKey), LockMode::exclusive);
    EXPECT_FALSE(locks.try_lock(as_key(kKey), LockMode::shared));
    EXPECT_TRUE(locks.allows(as_key(kOther), LockMode::exclusive));
    exclusive->unlock();
    EXPECT_TRUE(locks.try_lock(as_key(kKey), LockMode::shared));
  }
  EXPECT_TRUE(locks.empty());
}

TEST(KeyLocks, AreGrantedInTheOrderInWhichTheyWereAskedFor) {
  KeyLocks locks;
  std::string order;
  run([&](Thread& thread) -> Task<> {
    const auto take = [&](char name, LockMode mode) -> Task<> {
      const KeyLocks::Lock lock = co_await locks.lock(as_key(kKey), mode);
      order += name;
      co_await yield();
      order += static_cast<char>(std::toupper(name));
    };
    auto first = locks.try_lock(as_key(kKey), LockMode::shared);
    thread.executor.spawn(take('a', LockMode::exclusive));
    thread.executor.spawn(take('b', LockMode::shared));
    thread.executor.spawn(take('c', LockMode::shared));
    thread.executor.spawn(take('d', LockMode::exclusive));
    thread.executor.spawn(take('e', LockMode::shared));
    for (int i = 0; i < 10; ++i) co_await yield();
    EXPECT_EQ(order, "") << "a shared lock went past one that waits for an exclusive lock";
    EXPECT_FALSE(locks.try_lock(as_key(kKey), LockMode::shared));
    first->unlock();
    for (int i = 0; i < 20; ++i) co_await yield();
  });
  EXPECT_EQ(order, "aAbcBCdDeE");
  EXPECT_TRUE(locks.empty());
}

// A task that ends while it waits.
TEST(KeyLocks, WhoGivesUpHindersNobody) {
  KeyLocks locks;
  bool reached = false;
  run([&](Thread& thread) -> Task<> {
    auto first = locks.try_lock(as_key(kKey), LockMode::shared);
    const auto take = [&](LockMode mode, bool& done) -> Task<> {
      const KeyLocks::Lock lock = co_await locks.lock(as_key(kKey), mode);
      done = true;
    };
    bool never = false;
    {
      // Started by hand, and destroyed at the end of the block.
      const Task<> gives_up = take(LockMode::exclusive, never);
      gives_up.handle().resume();
      thread.executor.spawn(take(LockMode::shared, reached));
      co_await yield();
      EXPECT_FALSE(reached) << "it went past one that waits";
    }
    co_await yield();
    EXPECT_TRUE(reached) << "nobody is waited for any more";
    EXPECT_FALSE(never);
    first->unlock();
  });
  EXPECT_TRUE(locks.empty());
}

// Many tasks on few keys: never a lock beside an exclusive one, and each gets its turn.
TEST(KeyLocks, ExcludeOthersAlways) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  KeyLocks locks;
  std::map<std::string, std::pair<int, int>> held;  // shared, exclusive
  int turns = 0;
  run([&](Thread& thread) -> Task<> {
    const auto work = [&](unsigned number) -> Task<> {
      std::mt19937_64 random(seed + number);
      for (int i = 0; i < 200; ++i) {
        const std::string key = "key " + std::to_string(random() % 3);
        const bool exclusive = random() % 3 == 0;
        const LockMode mode = exclusive ? LockMode::exclusive : LockMode::shared;
        KeyLocks::Lock lock;
        if (random() % 4 == 0) {
          auto at_once = locks.try_lock(as_key(key), mode);
          if (!at_once) continue;
          lock = std::move(*at_once);
        } else {
          lock = co_await locks.lock(as_key(key), mode);
        }
        auto& [shared, exclusives] = held[key];
        (exclusive ? exclusives : shared) += 1;
        EXPECT_TRUE(exclusives == 0 || (exclusives == 1 && shared == 0));
        for (auto pauses = random() % 4; pauses > 0; --pauses) co_await yield();
        (exclusive ? exclusives : shared) -= 1;
        ++turns;
      }
    };
    for (unsigned i = 0; i < 12; ++i) thread.executor.spawn(work(i));
    while (!locks.empty() || turns == 0) co_await yield();
    for (int i = 0; i < 5000; ++i) co_await yield();
  });
  EXPECT_GT(turns, 1500);
  EXPECT_TRUE(locks.empty());
}

}  // namespace
}  // namespace perdura::systems::mcas
