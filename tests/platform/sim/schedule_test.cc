// Choices that take the place of times: messages and devices that are late, and the order of tasks.
// That the fabric keeps its promises with them is tested by conformance.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::sim::test {
namespace {

// Takes alternative `taken` at choice number `at`, and the first everywhere else.
class OneChoice final : public pmem::Choices {
 public:
  OneChoice(std::uint64_t at, std::size_t taken) : at_(at), taken_(taken) {}
  std::size_t choose(std::size_t n) override { return asked++ == at_ && taken_ < n ? taken_ : 0; }
  std::uint64_t asked = 0;

 private:
  std::uint64_t at_;
  std::size_t taken_;
};

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// What a client sees that writes a word to a server's memory and reads it back, twice.
struct Seen {
  std::vector<Time> completed;
  std::vector<std::uint64_t> read;
};

Seen write_and_read(const SimPlatform::ScheduleChoices& choices) {
  SimPlatform platform(perdura::test::erda_testbed(), 2);
  platform.choose_schedule(choices);
  Seen seen;
  fabric::MemoryRegion remote;
  const auto region = platform.local_node(0)->create_region("r", 64, pmem::Medium::dram);
  platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    remote = thread.endpoint.register_memory(*region, fabric::Access::remote_all);
    const auto request = co_await thread.endpoint.next_connection();
    const auto queue_pair = request->accept({}, {});
    while (queue_pair->connected()) co_await sleep_for(Microseconds(1));
  });
  platform.start(1, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    std::vector<std::byte> nothing;
    const fabric::QueuePairOptions with;
    fabric::Connection connection =
        co_await thread.endpoint.connect({0, 0}, with, std::move(nothing));
    fabric::QueuePair& queue_pair = *connection.queue_pair;
    const auto own = platform.local_node(1)->create_region("own", 64, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*own, fabric::Access::local);
    for (std::uint64_t i = 1; i <= 2; ++i) {
      own->store(0, i);
      auto write = queue_pair.write(memory.local(0, 8), remote.remote(0));
      auto read = queue_pair.read(memory.local(8, 8), remote.remote(0));
      write.post();
      read.post();
      co_await write;
      seen.completed.push_back(thread.executor.now());
      co_await read;
      seen.completed.push_back(thread.executor.now());
      seen.read.push_back(own->load(8));
    }
  });
  platform.run();
  return seen;
}

TEST(Schedules, ChoicesOfZeroChangeNothing) {
  OneChoice messages(kNowhere, 0);
  OneChoice devices(kNowhere, 0);
  const Seen plain = write_and_read({});
  const Seen chosen = write_and_read({.messages = &messages, .devices = &devices});
  EXPECT_EQ(chosen.completed, plain.completed);
  // There and back, of four operations; two of them place something.
  EXPECT_EQ(messages.asked, 8U);
  EXPECT_EQ(devices.asked, 2U);
}

TEST(Schedules, AnyMessageMayBeLateAndAllBehindItAreToo) {
  const Seen plain = write_and_read({});
  for (std::uint64_t late = 0; late < 8; ++late) {
    SCOPED_TRACE(late);
    OneChoice messages(late, 2);
    const Seen seen = write_and_read({.messages = &messages});
    EXPECT_EQ(seen.read, (std::vector<std::uint64_t>{1, 2}));
    ASSERT_EQ(seen.completed.size(), plain.completed.size());
    EXPECT_TRUE(std::is_sorted(seen.completed.begin(), seen.completed.end()));
    // The last operation has to wait for all of it, unless that was in flight meanwhile.
    EXPECT_GE(seen.completed.back(), plain.completed.back() + Microseconds(20));
  }
}

// A WRITE completes when the responder's device has it; a READ behind it waits for its placement.
TEST(Schedules, ALatePlacementDelaysTheReadBehindItAndNotTheCompletion) {
  const Seen plain = write_and_read({});
  OneChoice devices(0, 2);
  const Seen seen = write_and_read({.devices = &devices});
  EXPECT_EQ(seen.read, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(seen.completed[0], plain.completed[0]);
  EXPECT_GE(seen.completed[1], plain.completed[1] + Microseconds(24));
}

std::string order_of_tasks(pmem::Choices* tasks) {
  SimPlatform platform(perdura::test::erda_testbed(), 1);
  platform.choose_schedule({.threads = {.tasks = tasks}});
  std::string order;
  const auto named = [&order](char name) -> Task<> {
    order += name;
    co_await yield();
    order += name;
  };
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    for (const char name : {'a', 'b', 'c'}) thread.executor.spawn(named(name));
    co_await sleep_for(Microseconds(10));
  });
  platform.run();
  return order;
}

TEST(Schedules, AnyReadyTaskMayBeNext) {
  EXPECT_EQ(order_of_tasks(nullptr), "abcabc");
  OneChoice first(kNowhere, 0);
  EXPECT_EQ(order_of_tasks(&first), "abcabc");
  std::string all;
  for (std::uint64_t at = 0; at < first.asked; ++at) {
    for (const std::size_t taken : {1, 2}) {
      OneChoice one(at, taken);
      all += order_of_tasks(&one) + ' ';
    }
  }
  // A task that was overtaken stays in front of the others.
  for (const std::string one : {"bacbac", "cabcab", "aabcbc", "abcacb"}) {
    EXPECT_NE(all.find(one), std::string::npos) << one << " is not among " << all;
  }
}

// For so long it does not even notice that the operation completes.
TEST(Schedules, AThreadMayStandStillBehindWhatItPosts) {
  const Seen plain = write_and_read({});
  OneChoice posts(0, 2);
  const Seen seen = write_and_read({.threads = {.posts = &posts}});
  EXPECT_EQ(seen.read, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_GE(seen.completed[0], Time() + Microseconds(25));
  EXPECT_LT(plain.completed[0], Time() + Microseconds(25));
  EXPECT_EQ(posts.asked, 4U);
}

// When another task runs that was ready while the first one let it run.
Time when_another_runs(pmem::Choices* yields) {
  SimPlatform platform(perdura::test::erda_testbed(), 1);
  platform.choose_schedule({.threads = {.yields = yields}});
  Time when;
  const auto another = [&when]() -> Task<> {
    when = Executor::current().now();
    co_return;
  };
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    thread.executor.spawn(another());
    co_await yield();
  });
  platform.run();
  return when;
}

TEST(Schedules, AThreadMayStandStillWhereATaskLetsOthersRun) {
  const Time plain = when_another_runs(nullptr);
  OneChoice yields(0, 2);
  EXPECT_EQ(when_another_runs(&yields), plain + Microseconds(25));
  EXPECT_EQ(yields.asked, 1U);
}

}  // namespace
}  // namespace perdura::sim::test
