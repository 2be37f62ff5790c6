// Which session what arrives belongs to, and which number the next one gets.
#include "rpc/sessions.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace perdura::rpc {
namespace {

// Connections that are known by their place.
class FakeQueuePair final : public fabric::QueuePair {
 public:
  void post_unsignaled(const fabric::WorkRequest&) override {}
  bool connected() const override { return true; }
  fabric::Address peer() const override { return {}; }
  std::size_t in_line() const override { return 0; }

 private:
  void post(fabric::RdmaOperation&) override {}
  void abandon(fabric::RdmaOperation&) override {}
};

struct NumberedSession {
  std::uint32_t number = 0;
  std::unique_ptr<fabric::QueuePair> queue_pair;
  bool is_free() const { return queue_pair == nullptr; }
};

TEST(SessionTable, GivesTheLowestFreeNumberAndKnowsWhoseAConnectionIs) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr std::uint32_t kSessions = 6;
  SessionTable<NumberedSession> table(kSessions);
  ASSERT_EQ(table.size(), kSessions);
  for (int i = 0; i < 2000; ++i) {
    std::uint32_t lowest = 0;
    while (lowest < kSessions && !table[lowest].is_free()) ++lowest;
    NumberedSession* const free = table.find_free();
    if (lowest == kSessions) {
      ASSERT_EQ(free, nullptr);
    } else {
      ASSERT_NE(free, nullptr);
      EXPECT_EQ(free->number, lowest);
    }
    if (free != nullptr && random() % 2 == 0) {
      free->queue_pair = std::make_unique<FakeQueuePair>();
      table.connected(*free->queue_pair, *free);
    } else if (NumberedSession& session = table[random() % kSessions]; !session.is_free()) {
      const fabric::QueuePair* const gone = session.queue_pair.get();
      table.forget(*gone);
      EXPECT_EQ(table.of(gone), nullptr);
      session.queue_pair.reset();
    }
    for (NumberedSession& session : table) {
      if (session.is_free()) continue;
      EXPECT_EQ(table.of(session.queue_pair.get()), &session);
    }
  }
}

TEST(SessionTable, ASessionMayHaveSeveralConnections) {
  SessionTable<NumberedSession> table(2);
  FakeQueuePair first;
  FakeQueuePair second;
  table.connected(first, table[1]);
  table.connected(second, table[1]);
  EXPECT_EQ(table.of(&first), &table[1]);
  table.forget(first);
  EXPECT_EQ(table.of(&first), nullptr);
  EXPECT_EQ(table.of(&second), &table[1]);
}

}  // namespace
}  // namespace perdura::rpc
