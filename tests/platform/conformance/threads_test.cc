// Threads that are started and stopped while a platform runs, and background threads with an
// endpoint.
#include <atomic>
#include <stdexcept>

#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

namespace {

Task<> sleep_forever(std::atomic<int>* begun, std::atomic<int>* destroyed) {
  const Witness witness(destroyed);
  ++*begun;
  for (;;) co_await sleep_for(std::chrono::hours(1));
}

Task<> until_at_least(const std::atomic<int>* number, int goal) {
  while (*number < goal) co_await sleep_for(Microseconds(10));
}

Task<> throw_from_a_spawned_task() {
  co_await yield();
  throw std::runtime_error("from a spawned task");
}

}  // namespace

TEST_P(PlatformThreads, StartWhileThePlatformRunsAndAreWaitedFor) {
  const auto platform = make();
  std::atomic<int> begun{0};
  int ended = 0;
  platform->start(0, 1, mode(), [&](Thread&) -> Task<> {
    platform->start(1, 1, mode(), [&](Thread& first) -> Task<> {
      EXPECT_EQ(first.node.id(), 1U);
      EXPECT_EQ(first.endpoint.address().port, 1);
      platform->start(1, 2, mode(), [&](Thread&) -> Task<> {
        ++begun;
        co_await sleep_for(Milliseconds(2));
        ++ended;
      });
      ++begun;
      co_return;
    });
    co_await until_at_least(&begun, 1);
  });
  platform->run();
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(ended, 1);
}

TEST_P(PlatformThreads, ExceptionsOfOneThatWasStartedLaterComeOutOfRun) {
  const auto platform = make();
  std::atomic<int> begun{0};
  std::atomic<int> destroyed{0};
  platform->start(0, 1, mode(), [&](Thread&) -> Task<> {
    platform->start(1, 1, mode(), [](Thread&) -> Task<> {
      co_await yield();
      throw std::runtime_error("from a body");
    });
    co_await sleep_forever(&begun, &destroyed);
  });
  EXPECT_THROW(platform->run(), std::runtime_error);
  EXPECT_EQ(destroyed, 1);
}

TEST_P(PlatformThreads, ThatAreStoppedAreGoneWhenStopReturns) {
  const auto platform = make();
  std::atomic<int> begun{0};
  std::atomic<int> destroyed{0};
  const auto body = [&](Thread& thread) -> Task<> {
    thread.executor.spawn(sleep_forever(&begun, &destroyed));
    co_await sleep_forever(&begun, &destroyed);
  };
  // One that begins with the run, one that begins later, and a service of each kind: nobody waits
  // for those that were stopped.
  const auto first = platform->start(1, 1, mode(), body);
  const auto service = platform->start_service(1, 2, mode(), body);
  platform->start(0, 1, mode(), [&](Thread&) -> Task<> {
    const auto later = platform->start(1, 3, mode(), body);
    const auto later_service = platform->start_service(0, 3, mode(), body);
    co_await until_at_least(&begun, 8);
    int expected = 0;
    for (const auto& each : {first, service, later, later_service}) {
      each->stop();
      expected += 2;
      EXPECT_EQ(destroyed, expected);
      each->stop();
      EXPECT_EQ(destroyed, expected);
    }
  });
  platform->run();
  EXPECT_EQ(destroyed, 8);
  first->stop();  // the run has ended
}

TEST_P(PlatformThreads, ThatAreStoppedBeforeTheRunDoNotBegin) {
  const auto platform = make();
  std::atomic<int> begun{0};
  std::atomic<int> destroyed{0};
  const auto never = platform->start(
      1, 1, mode(), [&](Thread&) -> Task<> { co_await sleep_forever(&begun, &destroyed); });
  platform->start(0, 1, mode(), [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(1)); });
  never->stop();
  platform->run();
  EXPECT_EQ(begun, 0);
}

TEST_P(PlatformThreads, CannotStopThemselves) {
  const auto platform = make();
  std::shared_ptr<StartedThread> self;
  self = platform->start(0, 1, mode(), [&](Thread&) -> Task<> {
    EXPECT_THROW(self->stop(), UsageError);
    co_return;
  });
  platform->run();
}

TEST_P(PlatformThreads, LeaveTheirPortToTheNext) {
  constexpr int kRounds = 10;
  const auto platform = make();
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    for (int round = 0; round < kRounds; ++round) {
      const auto server = platform->start_service(1, 9, mode(), [](Thread& there) -> Task<> {
        Side accepting(there);
        prepare(accepting, {});
        co_await accept(&accepting, {});
        accepting.memory.region->store(0, 77);
        for (;;) co_await sleep_for(std::chrono::hours(1));
      });
      co_await connect(&side, {1, 9}, {});
      // The memory of this round's server, which stores into it some time.
      side.region->store(0, 0);
      while (side.region->load(0) != 77) {
        const auto read = co_await side.queue_pair->read(side.local(0, kWord), side.there);
        EXPECT_EQ(read.status, fabric::Status::success);
        if (read.status != fabric::Status::success) co_return;
      }
      server->stop();
      const auto after = co_await side.queue_pair->read(side.local(0, kWord), side.there);
      EXPECT_NE(after.status, fabric::Status::success) << "it is gone";
      side.queue_pair.reset();
    }
  });
  platform->run();
}

TEST_P(PlatformThreads, ComeAndGoWhileOthersDo) {
  constexpr int kStarters = 3;
  constexpr int kRounds = 30;
  const auto platform = make();
  std::atomic<int> begun{0};
  std::atomic<int> destroyed{0};
  for (int i = 0; i < kStarters; ++i) {
    platform->start(0, static_cast<fabric::Port>(i), mode(), [&, i](Thread&) -> Task<> {
      const auto port = static_cast<fabric::Port>(100 + i);
      for (int round = 0; round < kRounds; ++round) {
        std::atomic<int> mine{0};
        const auto other = platform->start(1, port, mode(), [&](Thread&) -> Task<> {
          ++begun;
          co_await sleep_forever(&mine, &destroyed);
        });
        // Often before it has begun, which is all the same.
        if (round % 2 == 0) co_await until_at_least(&mine, 1);
        other->stop();
      }
    });
  }
  platform->run();
  EXPECT_EQ(begun, destroyed);
  EXPECT_GE(begun, kStarters * kRounds / 2);
}

TEST_P(PlatformThreads, ABackgroundThreadWithAPortCanBeConnectedTo) {
  const auto platform = make();
  std::atomic<int> completed{0};  // the sender's rounds
  std::atomic<int> served{0};
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    for (int round = 1; round <= 3; ++round) {
      auto background = thread.node.start_background_thread(9);
      Thread& there = background->thread();
      EXPECT_EQ(&there.node, &thread.node);
      EXPECT_NE(&there.executor, &thread.executor);
      EXPECT_EQ(there.endpoint.address(), (fabric::Address{0, 9}));
      const auto serve = [&completed](Thread* on, int message_of) -> Task<> {
        EXPECT_EQ(&Executor::current(), &on->executor);
        Side side(*on);
        prepare(side, {});
        co_await accept(&side, {});
        const auto message = co_await side.completions.next();
        EXPECT_EQ(text_of(message.buffer), "hello");
        // A queue pair that is gone acknowledges nothing, not even what has arrived.
        co_await until_at_least(&completed, message_of);
      };
      co_await background->run(serve(&there, round));
      background.reset();
      served = round;  // whoever connects from now on connects to the next one
    }
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    side.region->write(0, bytes_of("hello"));
    for (int round = 1; round <= 3; ++round) {
      co_await connect(&side, {0, 9}, {});
      const auto sent = co_await side.queue_pair->send(side.local(0, 5));
      EXPECT_EQ(sent.status, fabric::Status::success);
      completed = round;
      co_await until_at_least(&served, round);
      side.queue_pair.reset();
    }
  });
  platform->run();
}

TEST_P(PlatformThreads, ABackgroundThreadWithAPortCanConnect) {
  const auto platform = make();
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    side.region->store(0, 5);
    co_await accept(&side, {});
    // Until the peer is gone.
    while (side.queue_pair->connected()) co_await sleep_for(Microseconds(10));
  });
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto background = thread.node.start_background_thread(9);
    const auto read = [](Thread* on) -> Task<> {
      Side side(*on);
      prepare(side, {});
      co_await connect(&side, {1, 1}, {});
      const auto done = co_await side.queue_pair->read(side.local(0, kWord), side.there);
      EXPECT_EQ(done.status, fabric::Status::success);
      EXPECT_EQ(side.region->load(0), 5U);
    };
    co_await background->run(read(&background->thread()));
  });
  platform->run();
}

TEST_P(PlatformThreads, ABackgroundThreadWithoutAPortHasNoEndpoint) {
  const auto platform = make({.node_count = 1});
  platform->start(0, 1, mode(), [](Thread& thread) -> Task<> {
    const auto background = thread.node.start_background_thread();
    EXPECT_THROW(background->thread(), UsageError);
    co_return;
  });
  platform->run();
}

TEST_P(PlatformThreads, WhatTasksSpawnOnABackgroundThreadThrowEndsTheRun) {
  for (const std::optional<fabric::Port> port : {std::optional<fabric::Port>(), {9}}) {
    const auto platform = make({.node_count = 1});
    std::atomic<int> begun{0};
    std::atomic<int> destroyed{0};
    platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
      const auto background = thread.node.start_background_thread(port);
      const auto spawn = []() -> Task<> {
        Executor::current().spawn(throw_from_a_spawned_task());
        co_return;
      };
      co_await background->run(spawn());
      co_await sleep_forever(&begun, &destroyed);
    });
    EXPECT_THROW(platform->run(), std::runtime_error);
    EXPECT_LE(destroyed, 1);
  }
}

}  // namespace perdura::conformance
