// Where messages land, and when their buffers are posted again.
#include "rpc/receive_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <vector>

namespace perdura::rpc {
namespace {

// Of buffers that are used in the order posted.
class FakeQueue final : public fabric::ReceiveQueue {
 public:
  std::uint32_t depth() const override { return 0; }
  void post(const fabric::LocalPieces& buffer, std::uint64_t id) override {
    EXPECT_EQ(buffer.first().offset, 100 + id * 64);
    EXPECT_EQ(std::count(posted.begin(), posted.end(), id), 0) << "posted twice";
    posted.push_back(id);
  }
  std::uint64_t arrive() {
    const std::uint64_t id = posted.front();
    posted.pop_front();
    return id;
  }
  std::deque<std::uint64_t> posted;
};

TEST(KeptReplies, EachCallHasABufferPostedOrKeepsItsReply) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr std::uint32_t kCalls = 4;
  FakeQueue queue;
  KeptReplies replies;
  replies.open(queue, {{}, 100, 64, 64}, kCalls);
  enum class State { idle, asks, keeps };
  std::vector<State> states(kCalls, State::idle);
  std::vector<std::optional<KeptReplies::Use>> uses(kCalls);
  for (int i = 0; i < 2000; ++i) {
    const auto call = static_cast<Call>(random() % kCalls);
    switch (states[call]) {
      case State::idle:
        uses[call].emplace(replies, call);
        states[call] = State::asks;
        break;
      case State::asks: {
        ASSERT_FALSE(queue.posted.empty()) << "a reply finds no buffer";
        const std::uint64_t buffer = queue.arrive();
        replies.keep(call, buffer);
        EXPECT_EQ(replies.kept(call).offset, 100 + buffer * 64);
        states[call] = State::keeps;
        break;
      }
      case State::keeps:
        if (random() % 2 == 0) {
          replies.post_again(call);
          states[call] = State::asks;
        } else {
          uses[call].reset();
          states[call] = State::idle;
        }
        break;
    }
    const auto asking = std::count(states.begin(), states.end(), State::asks);
    EXPECT_EQ(queue.posted.size(), static_cast<std::size_t>(asking));
  }
}

TEST(KeptReplies, ACallThatEndsWithoutItsReplyLeavesItsBufferToTheNext) {
  FakeQueue queue;
  KeptReplies replies;
  replies.open(queue, {{}, 100, 64, 64}, 1);
  for (int i = 0; i < 3; ++i) {
    const KeptReplies::Use use(replies, 0);
    EXPECT_EQ(queue.posted.size(), 1U);
  }
}

TEST(KeptReplies, NothingIsPostedToABrokenConnection) {
  FakeQueue queue;
  KeptReplies replies;
  replies.open(queue, {{}, 100, 64, 64}, 2);
  replies.close();
  const KeptReplies::Use use(replies, 0);
  replies.keep(0, 0);
  replies.post_again(0);
  EXPECT_TRUE(queue.posted.empty());
}

}  // namespace
}  // namespace perdura::rpc
