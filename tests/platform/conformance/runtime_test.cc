// The executor: order of tasks and timers, and what the run does with threads, services, exceptions
// and barriers.
#include <atomic>
#include <future>
#include <stdexcept>

#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

namespace {

void run_one(const Case& on, std::function<Task<>(Thread&)> body) {
  const auto platform = on.make({.node_count = 1});
  platform->start(0, 1, on.mode, std::move(body));
  platform->run();
}

Task<> sleep_and_note(std::vector<int>* order, int number, Picoseconds duration) {
  co_await sleep_for(duration);
  order->push_back(number);
}

Task<int> twice(int n) {
  co_await yield();
  co_return 2 * n;
}

Task<> throw_after(Picoseconds duration) {
  co_await sleep_for(duration);
  throw std::runtime_error("from a task");
}

Task<> sleep_forever(std::atomic<int>* destroyed) {
  const Witness witness(destroyed);
  for (;;) co_await sleep_for(std::chrono::hours(1));
}

}  // namespace

TEST_P(Runtime, TasksReturnValuesAndThrow) {
  run_one(GetParam(), [](Thread&) -> Task<> {
    EXPECT_EQ(co_await twice(21), 42);
    bool caught = false;
    try {
      co_await throw_after(Nanoseconds(0));
    } catch (const std::runtime_error&) {
      caught = true;
    }
    EXPECT_TRUE(caught);
  });
}

TEST_P(Runtime, ATaskThatHasEndedHoldsNothing) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    std::atomic<int> destroyed{0};
    thread.executor.spawn([](std::shared_ptr<Witness>) -> Task<> {
      co_await yield();
    }(std::make_shared<Witness>(&destroyed)));
    while (destroyed == 0) co_await yield();
  });
}

TEST_P(Runtime, SleepersWakeInTheOrderOfTheirTimes) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    std::vector<int> order;
    const Time start = thread.executor.now();
    thread.executor.spawn(sleep_and_note(&order, 3, Milliseconds(9)));
    thread.executor.spawn(sleep_and_note(&order, 1, Milliseconds(3)));
    thread.executor.spawn(sleep_and_note(&order, 2, Milliseconds(6)));
    while (order.size() < 3) co_await sleep_for(Microseconds(100));
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
    EXPECT_GE(thread.executor.now() - start, Milliseconds(9));
  });
}

TEST_P(Runtime, SleepersOfTheSameTimeWakeInTheOrderInWhichTheyFellAsleep) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    std::vector<int> order;
    const Time when = thread.executor.now() + Milliseconds(1);
    for (int i = 0; i < 20; ++i) {
      thread.executor.spawn([](std::vector<int>* notes, int number, Time at) -> Task<> {
        co_await sleep_until(at);
        notes->push_back(number);
      }(&order, i, when));
    }
    while (order.size() < 20) co_await sleep_for(Microseconds(100));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  });
}

TEST_P(Runtime, ReadyTasksTakeTurns) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    std::vector<int> order;
    for (int i = 0; i < 3; ++i) {
      thread.executor.spawn([](std::vector<int>* notes, int number) -> Task<> {
        for (int n = 0; n < 4; ++n) {
          notes->push_back(number);
          co_await yield();
        }
      }(&order, i));
    }
    while (order.size() < 12) co_await yield();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  });
}

TEST_P(Runtime, TimeDoesNotStandStillAndDoesNotRunBack) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    Time last = thread.executor.now();
    for (int i = 0; i < 100; ++i) {
      const Time asked = thread.executor.now() + Microseconds(i);
      co_await sleep_until(asked);
      EXPECT_GE(thread.executor.now(), asked);
      EXPECT_GE(thread.executor.now(), last);
      last = thread.executor.now();
    }
    co_await sleep_until(Time{});  // long past: at once
  });
}

TEST_P(Runtime, WaitersAreServedInOrder) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    Semaphore two(2);
    std::vector<int> order;
    int left = 6;
    for (int i = 0; i < 6; ++i) {
      thread.executor.spawn(
          [](Semaphore* free, std::vector<int>* notes, int number, int* running) -> Task<> {
            co_await free->acquire();
            notes->push_back(number);
            co_await yield();
            free->release();
            --*running;
          }(&two, &order, i, &left));
    }
    while (left != 0) co_await yield();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5}));
  });
}

TEST_P(Runtime, SpinLocksExcludeTheThreadsOfANode) {
  constexpr int kThreads = 3;
  constexpr int kEach = 2000;
  const auto platform = make({.node_count = 1});
  SpinLock lock;
  long counter = 0;
  for (int i = 0; i < kThreads; ++i) {
    platform->start(0, static_cast<fabric::Port>(i), mode(), [&](Thread&) -> Task<> {
      for (int n = 0; n < kEach; ++n) {
        lock.lock();
        ++counter;
        lock.unlock();
        if (n % 100 == 0) co_await yield();
      }
    });
  }
  platform->run();
  EXPECT_EQ(counter, kThreads * kEach);
}

// Those who read see no half of what those who write have done; nor does a writer wait for ever.
TEST_P(Runtime, SharedSpinLocksExcludeWritersFromReadersAndWriters) {
  constexpr int kThreads = 3;
  constexpr int kEach = 2000;
  const auto platform = make({.node_count = 1});
  SharedSpinLock lock;
  std::array<long, 2> counters{};
  for (int i = 0; i < kThreads; ++i) {
    platform->start(0, static_cast<fabric::Port>(i), mode(), [&](Thread&) -> Task<> {
      for (int n = 0; n < kEach; ++n) {
        lock.lock();
        ++counters[0];
        ++counters[1];
        lock.unlock();
        for (int reads = 0; reads < 3; ++reads) {
          lock.lock_shared();
          EXPECT_EQ(counters[0], counters[1]);
          lock.unlock_shared();
        }
        if (n % 100 == 0) co_await yield();
      }
    });
  }
  platform->run();
  EXPECT_EQ(counters[0], kThreads * kEach);
  // Outside of all threads, whose virtual time a lock may need.
  lock.lock_shared();
  lock.lock_shared();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock_shared();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock_shared();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
}

// Whatever the compiler does of tail calls, so without optimization, too.
TEST_P(Runtime, ALoopOfTasksThatDoNotWaitNeedsNoMoreStackTheLongerItIs) {
  run_one(GetParam(), [](Thread&) -> Task<> {
    const auto at = []() -> Task<void*> { co_return __builtin_frame_address(0); };
    const auto above = [](auto below) -> Task<void*> { co_return co_await below(); };
    void* const first = co_await above(at);
    for (int i = 0; i < 1000; ++i) {
      void* const here = co_await above(at);
      EXPECT_EQ(here, first);
      if (here != first) break;
    }
  });
}

TEST_P(Runtime, ABackgroundThreadRunsWhatItIsGiven) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    const auto background = thread.node.start_background_thread();
    Executor* const own = &thread.executor;
    int turns = 0;  // of two tasks that take turns on one thread
    const auto count = [](Executor* caller, int* turns_taken) -> Task<> {
      EXPECT_NE(&Executor::current(), caller);
      for (int i = 0; i < 100; ++i) {
        ++*turns_taken;
        co_await yield();
      }
      co_await sleep_for(Microseconds(10));
    };
    bool other_ended = false;
    const auto run_other = [](BackgroundThread* on, Task<> work, bool* ended) -> Task<> {
      co_await on->run(std::move(work));
      *ended = true;
    };
    thread.executor.spawn(run_other(background.get(), count(own, &turns), &other_ended));
    co_await background->run(count(own, &turns));
    EXPECT_EQ(&Executor::current(), own);
    while (!other_ended) co_await yield();
    EXPECT_EQ(turns, 200);

    bool thrown = false;
    try {
      co_await background->run(throw_after(Microseconds(1)));
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  });
}

TEST_P(Runtime, ABackgroundThreadTakesItsTasksAlong) {
  run_one(GetParam(), [](Thread& thread) -> Task<> {
    std::atomic<int> destroyed{0};
    std::atomic<bool> begun{false};
    auto background = thread.node.start_background_thread();
    const auto sleep = [](std::atomic<int>* ended, std::atomic<bool>* started) -> Task<> {
      started->store(true);
      co_await sleep_forever(ended);
    };
    const auto give = [](BackgroundThread* to, Task<> work, bool* told) -> Task<> {
      try {
        co_await to->run(std::move(work));
      } catch (const std::future_error& error) {
        *told = error.code() == std::future_errc::broken_promise;
      }
    };
    bool told = false;
    thread.executor.spawn(give(background.get(), sleep(&destroyed, &begun), &told));
    while (!begun) co_await sleep_for(Microseconds(1));
    background.reset();
    EXPECT_EQ(destroyed, 1);
    while (!told) co_await sleep_for(Microseconds(1));
  });
}

TEST_P(PlatformRun, ExceptionsOfABodyComeOutOfRun) {
  const auto platform = make();
  platform->start(0, 1, mode(), [](Thread&) -> Task<> { co_await throw_after(Milliseconds(1)); });
  EXPECT_THROW(platform->run(), std::runtime_error);
}

TEST_P(PlatformRun, AnExceptionOfASpawnedTaskStopsEverything) {
  const auto platform = make();
  const auto barrier = platform->create_barrier(2);
  std::atomic<int> destroyed{0};
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    co_await barrier->arrive_and_wait();
    thread.executor.spawn(throw_after(Milliseconds(1)));
    co_await sleep_forever(&destroyed);
  });
  platform->start(1, 1, mode(), [&](Thread&) -> Task<> {
    const Witness witness(&destroyed);
    co_await barrier->arrive_and_wait();
    for (;;) co_await sleep_for(std::chrono::hours(1));
  });
  EXPECT_THROW(platform->run(), std::runtime_error);
  EXPECT_EQ(destroyed, 2);
}

TEST_P(PlatformRun, ServicesAreStoppedWhenAllStartedThreadsHaveEnded) {
  const auto platform = make();
  std::atomic<int> destroyed{0};
  std::atomic<bool> ended{false};
  std::atomic<int> turns{0};
  platform->start_service(0, 1, mode(), [&](Thread& thread) -> Task<> {
    const Witness witness(&destroyed);
    thread.executor.spawn(sleep_forever(&destroyed));
    for (;;) {
      co_await sleep_for(Microseconds(100));
      ++turns;
      EXPECT_FALSE(destroyed);
    }
  });
  platform->start(1, 1, mode(), [&](Thread&) -> Task<> {
    while (turns < 20) co_await sleep_for(Microseconds(100));
    ended = true;
  });
  platform->run();
  EXPECT_TRUE(ended);
  EXPECT_EQ(destroyed, 2);
}

// What a body leaves behind goes on until all have ended, and is destroyed then.
TEST_P(PlatformRun, SpawnedTasksOutliveTheirBodyButNotTheRun) {
  const auto platform = make();
  std::atomic<int> destroyed{0};
  std::atomic<bool> spawned{false};
  std::atomic<bool> done{false};
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    thread.executor.spawn(sleep_forever(&destroyed));
    spawned = true;
    co_return;
  });
  platform->start(1, 1, mode(), [&](Thread&) -> Task<> {
    while (!spawned) co_await sleep_for(Microseconds(100));
    co_await sleep_for(Milliseconds(3));  // for the body to end, probably
    done = destroyed == 0;
  });
  platform->run();
  EXPECT_TRUE(done);
  EXPECT_EQ(destroyed, 1);
}

TEST_P(PlatformRun, CanBeRunAgain) {
  const auto platform = make();
  int runs = 0;
  for (int i = 0; i < 5; ++i) {
    platform->start(0, 1, mode(), [&](Thread&) -> Task<> {
      co_await yield();
      ++runs;
    });
    platform->run();
  }
  EXPECT_EQ(runs, 5);
}

TEST_P(PlatformRun, NobodyPassesABarrierBeforeAllHaveArrived) {
  constexpr std::uint32_t kThreads = 4;
  constexpr int kRounds = 200;
  const auto platform = make({.node_count = 2});
  const auto barrier = platform->create_barrier(kThreads);
  std::atomic<int> arrived{0};
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    platform->start(i % 2, static_cast<fabric::Port>(i), mode(), [&, i](Thread&) -> Task<> {
      for (int round = 1; round <= kRounds; ++round) {
        if (i == 0 && round % 50 == 0) co_await sleep_for(Milliseconds(1));
        ++arrived;
        co_await barrier->arrive_and_wait();
        EXPECT_GE(arrived, static_cast<int>(kThreads) * round);
        co_await barrier->arrive_and_wait();
        EXPECT_LE(arrived, static_cast<int>(kThreads) * (round + 1));
      }
    });
  }
  platform->run();
}

TEST_P(PlatformRun, KnowsItsNodes) {
  const auto platform = make({.node_count = 3});
  EXPECT_EQ(platform->node_count(), 3U);
  for (NodeId id = 0; id < 3; ++id) {
    ASSERT_NE(platform->local_node(id), nullptr);
    EXPECT_EQ(platform->local_node(id)->id(), id);
  }
  EXPECT_EQ(platform->local_node(3), nullptr);
}

TEST_P(PlatformRun, CpuTimeGrowsWithWork) {
  const auto platform = make({.node_count = 2});
  platform->start(0, 1, mode(), [](Thread& thread) -> Task<> {
    const Picoseconds before = thread.node.cpu_time();
    const auto data = pattern(64 * KiB);
    std::uint32_t crc = 0;
    for (int i = 0; i < 200; ++i) crc = crc32(crc, data);
    co_await yield();
    EXPECT_GT(thread.node.cpu_time(), before) << crc;
  });
  platform->run();
  EXPECT_GT(platform->local_node(0)->cpu_time(), Picoseconds(0));
  EXPECT_EQ(platform->local_node(1)->cpu_time(), Picoseconds(0));
}

}  // namespace perdura::conformance
