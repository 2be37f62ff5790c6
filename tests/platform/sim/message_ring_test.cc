// What the model says of message rings: what they cost, and what the death of either side leaves.
#include "platform/message_ring.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::sim::test {
namespace {

constexpr RingShape kOfWords{.slots = 3, .message_size = 8};
constexpr std::uint64_t kPushes = 12;

std::span<const std::byte> bytes_of(const std::uint64_t& word) {
  return std::as_bytes(std::span(&word, 1));
}

Task<std::uint64_t> pop_word(RingConsumer& consumer) {
  std::uint64_t word = 0;
  co_await consumer.pop(std::as_writable_bytes(std::span(&word, 1)));
  co_return word;
}

Profile ring_testbed(Picoseconds line_transfer) {
  Profile profile = perdura::test::erda_testbed();
  profile.cpu.line_transfer = line_transfer;
  return profile;
}

// From the push to the pop of a message that somebody waits for, on one machine.
struct Measured {
  Picoseconds time{};
  Picoseconds cpu_time{};  // of the consumer's process
};
Measured one_message(Picoseconds line_transfer, CompletionMode mode) {
  SimPlatform platform(ring_testbed(line_transfer), 2, {0, 0});
  Time pushed{};
  Measured measured;
  platform.start(0, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto producer = rings_of(thread.node).open_producer("ring", kOfWords);
    co_await sleep_for(Milliseconds(1));
    pushed = thread.executor.now();
    const std::uint64_t word = 1;
    co_await producer->push(bytes_of(word));
  });
  platform.start(1, 1, mode, [&](Thread& thread) -> Task<> {
    const auto consumer = rings_of(thread.node).open_consumer("ring", kOfWords);
    EXPECT_EQ(co_await pop_word(*consumer), 1U);
    measured = {thread.executor.now() - pushed, thread.node.cpu_time()};
  });
  platform.run();
  return measured;
}

TEST(SimRings, AMessageTakesTheTransferOfALine) {
  const Measured near = one_message(Nanoseconds(50), CompletionMode::polling);
  const Measured far = one_message(Nanoseconds(350), CompletionMode::polling);
  EXPECT_EQ(far.time - near.time, Nanoseconds(300));
  EXPECT_GT(near.time, Nanoseconds(50));
}

// A consumer that sleeps pays for waking up, and uses no core until then.
TEST(SimRings, AWaitingConsumerSleepsAsItsThreadDoes) {
  const Measured polls = one_message(Nanoseconds(50), CompletionMode::polling);
  const Measured sleeps = one_message(Nanoseconds(50), CompletionMode::event);
  const WaitProfile wait = perdura::test::erda_testbed().server.wait;
  EXPECT_GE(sleeps.time, polls.time + wait.wakeup_latency - perdura::test::erda_testbed().cpu.poll);
  EXPECT_GT(polls.cpu_time, Milliseconds(1));
  EXPECT_LT(sleeps.cpu_time, Microseconds(100));
}

TEST(SimRings, WithoutALatencyInTheProfileALineComesAsLateAsFromMemory) {
  const Profile profile = perdura::test::erda_testbed();
  EXPECT_EQ(profile.cpu.line_transfer, profile.dram.read_latency);
}

// --- deaths --------------------------------------------------------------------------------------

// What a process pushes, from the first that its predecessor has not; it begins with how many
// messages its predecessor is known to have pushed.
Task<> push_from(Thread& thread, std::uint64_t first) {
  const auto producer = rings_of(thread.node).open_producer("ring", kOfWords);
  for (std::uint64_t word = first; word <= kPushes; ++word) co_await producer->push(bytes_of(word));
}

// Longer than all pushes and pops take, in steps that are shorter than one.
constexpr Picoseconds kStep = Nanoseconds(7);
constexpr int kSteps = 300;

// The producer dies at any time. The consumer has all that was pushed, in order, and goes on with
// what a successor pushes.
TEST(SimRings, AProducerThatDiesLeavesTheRingReadable) {
  std::set<std::uint64_t> found;
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(step);
    SimPlatform platform(ring_testbed(Nanoseconds(60)), 2, {0, 0});
    std::uint64_t popped = 0;
    platform.start_service(0, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
      co_await push_from(thread, 1);
      for (;;) co_await sleep_for(std::chrono::seconds(1));
    });
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto consumer = rings_of(thread.node).open_consumer("ring", kOfWords);
      while (popped < kPushes) {
        const std::uint64_t word = co_await pop_word(*consumer);
        EXPECT_EQ(word, popped + 1);
        popped = word;
      }
    });
    platform.at(Time(kStep * step), [&] {
      platform.kill(0);
      // Long after, when all that was pushed has been popped, its successor goes on.
      platform.at(platform.engine().now() + Milliseconds(1), [&] {
        found.insert(popped);
        platform.start_service(0, 1, CompletionMode::polling,
                               [first = popped + 1](Thread& thread) -> Task<> {
                                 co_await push_from(thread, first);
                                 for (;;) co_await sleep_for(std::chrono::seconds(1));
                               });
      });
    });
    platform.run();
    EXPECT_EQ(popped, kPushes);
  }
  EXPECT_EQ(found.size(), kPushes) << "it may die before any of its pushes";
}

// The consumer dies at any time. Its successor finds the first message that it has not popped:
// nothing is left out, and nothing comes twice but what the dead one would have popped later.
TEST(SimRings, AConsumerThatDiesLeavesWhatItHasNotPopped) {
  std::set<std::uint64_t> found;
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(step);
    SimPlatform platform(ring_testbed(Nanoseconds(60)), 2, {0, 0});
    struct Pop {
      std::uint64_t word;
      Time at;
    };
    std::vector<Pop> pops;
    const auto consume = [&](Thread& thread) -> Task<> {
      const auto consumer = rings_of(thread.node).open_consumer("ring", kOfWords);
      for (;;) {
        const std::uint64_t word = co_await pop_word(*consumer);
        pops.push_back({word, thread.executor.now()});
      }
    };
    platform.start(0, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
      co_await push_from(thread, 1);
      co_await sleep_for(Milliseconds(1));
    });
    platform.start_service(1, 1, CompletionMode::polling, consume);
    std::vector<Pop> before;
    platform.at(Time(kStep * step), [&] {
      platform.kill(1);
      before = std::move(pops);
      pops.clear();
      platform.start_service(1, 1, CompletionMode::polling, consume);
    });
    platform.run();
    // Of what it has popped ahead of its death the producer may know, and has used the slots again.
    std::uint64_t popped = 0;
    for (const Pop& pop : before) popped += pop.at <= Time(kStep * step) ? 1 : 0;
    const std::uint64_t first = pops.empty() ? kPushes + 1 : pops.front().word;
    EXPECT_GT(first, popped);
    EXPECT_LE(first, before.size() + 1);
    for (std::size_t i = 0; i < pops.size(); ++i) EXPECT_EQ(pops[i].word, first + i);
    EXPECT_EQ(first + pops.size(), kPushes + 1);
    found.insert(first);
  }
  EXPECT_EQ(found.size(), kPushes + 1) << "it may die before any of its pops, and after all";
}

// With the machine's power goes its DRAM.
TEST(SimRings, ThePowerTakesTheRing) {
  SimPlatform platform(ring_testbed(Nanoseconds(60)), 3, {0, 0, 2});
  platform.track_durability({pmem::PersistenceDomain::mhp, true});
  platform.start_service(0, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
    const auto producer = rings_of(thread.node).open_producer("ring", kOfWords);
    for (std::uint64_t word = 1;; ++word) co_await producer->push(bytes_of(word));
  });
  platform.start(2, 1, CompletionMode::polling,
                 [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(2)); });
  platform.at(Time(Milliseconds(1)), [&] {
    pmem::LeastChoices least;
    platform.fail_power(1, least);
    platform.start(1, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
      const auto consumer = rings_of(thread.node).open_consumer("ring", kOfWords);
      std::uint64_t word = 0;
      EXPECT_FALSE(consumer->try_pop(std::as_writable_bytes(std::span(&word, 1))));
      co_return;
    });
  });
  platform.run();
}

}  // namespace
}  // namespace perdura::sim::test
