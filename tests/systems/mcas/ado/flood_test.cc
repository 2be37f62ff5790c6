// A process that sends more than it should leaves its shard time for others, and takes a bounded
// part of its memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/micro/no_keys.h"
#include "tests/systems/mcas/ado/fake_shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;

constexpr std::uint64_t kFlood = 5000;

// Counts calls, and how many are executed before another task of the thread has its turn, which is
// ready when the first of them begins.
class CountedCalls final : public bench::micro::NoKeys {
 public:
  Task<> until_usable() override {
    ++count;
    if (since_turn_++ == 0) Executor::current().spawn(take_turn(*this));
    co_return;
  }
  std::uint64_t count = 0;
  std::uint64_t most_between_turns = 0;

 private:
  static Task<> take_turn(CountedCalls& calls) {
    calls.most_between_turns = std::max(calls.most_between_turns, calls.since_turn_);
    calls.since_turn_ = 0;
    co_return;
  }
  std::uint64_t since_turn_ = 0;
};

// A process that answers its launch and then does what it wants with its end of the queues.
using Flooding = std::function<Task<>(std::shared_ptr<Channel>)>;
void start_flood(Platform& platform, const Flooding& flooding) {
  platform.start_service(
      kProcessNode, 7, CompletionMode::event, [flooding](Thread& thread) -> Task<> {
        const auto peer = RingPeer::of_process(thread.node);
        const auto channel = std::make_shared<Channel>(peer);
        Channel::Message launch;
        co_await channel->receive(launch);
        WorkMessage order;
        Decoder decoder(launch.body);
        decoder(order);
        channel->send(MessageKind::completion, CompletionMessage{.id = order.id});
        co_await flooding(channel);
        WaitList never;
        co_await wait(never);
      });
}

class AdoFlood : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(On, AdoFlood, testing::Values("sim", "shm"),
                         [](const auto& platform) { return platform.param; });

// One work, and what has become of it.
CompletionMessage work_of(const std::string& platform_name, const Flooding& flooding,
                          CountedCalls& calls) {
  const auto platform = make_machine(platform_name);
  start_flood(*platform, flooding);
  CompletionMessage completion;
  platform->start(kShardNode, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const HostOptions options{.patience = Milliseconds(200),
                              .end_process = [] { return "left alone"; }};
    const auto host = std::make_shared<Host>(thread, calls, options);
    co_await host->attach(RingPeer::of_shard(thread.node));
    WorkMessage order{.key = "key"};
    Task<CompletionMessage> working = host->work(order, LockMode::write);
    completion = co_await std::move(working);
  });
  platform->run();
  return completion;
}

void send_calls(const std::shared_ptr<Channel>& channel) {
  for (std::uint64_t i = 0; i < kFlood; ++i) {
    channel->send(MessageKind::call, CallMessage{.id = i, .kind = CallKind::get_pool_info});
  }
}

// It is lost, as it does not answer. No more calls are executed than have answers under way and in
// the queue.
TEST_P(AdoFlood, CallsWhoseAnswersAreNotTakenAreBounded) {
  CountedCalls calls;
  const auto flooding = [](std::shared_ptr<Channel> channel) -> Task<> {
    send_calls(channel);
    co_return;
  };
  EXPECT_EQ(work_of(GetParam(), flooding, calls).status, WorkStatus::lost);
  EXPECT_GT(calls.count, 0U);
  EXPECT_LE(calls.count, kQueue.slots + 64);
}

// All are executed, but others on the thread have their turn between.
TEST_P(AdoFlood, OthersHaveTheirTurnBetweenCalls) {
  CountedCalls calls;
  const auto flooding = [](std::shared_ptr<Channel> channel) -> Task<> {
    send_calls(channel);
    WorkMessage order;
    Channel::Message message;
    for (std::uint64_t answers = 0; answers < kFlood || order.id == 0;) {
      co_await channel->receive(message);
      if (message.kind == MessageKind::answer) {
        ++answers;
      } else {
        Decoder decoder(message.body);
        decoder(order);
      }
    }
    channel->send(MessageKind::completion, CompletionMessage{.id = order.id});
  };
  EXPECT_EQ(work_of(GetParam(), flooding, calls).status, WorkStatus::done);
  EXPECT_EQ(calls.count, kFlood);
  EXPECT_LE(calls.most_between_turns, 16U);
}

// Messages without an end, or which end nothing.
TEST_P(AdoFlood, WhatIsNoMessageEndsTheProcess) {
  const auto platform = make_machine(GetParam());
  start_flood(*platform, [](std::shared_ptr<Channel>) -> Task<> { co_return; });
  platform->start(kShardNode, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    // The same thread has both ends of a queue of its own.
    const auto rings = [&](const std::string& out, const std::string& in) {
      return std::make_shared<RingPeer>(thread.node, out, in);
    };
    const auto sender = rings("there", "back");
    const auto receiver = std::make_shared<Channel>(rings("back", "there"));
    const std::array<std::uint32_t, 2> empty_and_not_last{};
    co_await sender->send(std::as_bytes(std::span(empty_and_not_last)));
    Channel::Message message;
    EXPECT_FALSE(co_await receiver->receive(message));
  });
  platform->run();
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
