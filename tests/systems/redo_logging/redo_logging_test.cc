// Redo Logging beyond what every key-value system must do (tests/systems/kv).
#include "platform/error.h"
#include "tests/systems/kv/support.h"

namespace perdura::systems::test {
namespace {

std::vector<Subject> subjects() {
  std::vector<Subject> found;
  for (const Subject& subject : all_subjects()) {
    if (subject.system == "redo-logging") found.push_back(subject);
  }
  return found;
}

class RedoLogging : public KvTest {};
INSTANTIATE_TEST_SUITE_P(All, RedoLogging, testing::ValuesIn(subjects()), subject_name);

// A client cannot know in which slot of the log its SEND will land. In a log that goes around every
// few puts it is often wrong about the lap; it is told, and sends again.
TEST_P(RedoLogging, ARecordSealedForAnotherLapIsRefusedAndSentAgain) {
  config_.sessions = 3;
  config_.parameters = {{"log_slots", 6}};
  serve();
  std::uint64_t retries = 0;
  for (std::uint64_t c = 0; c < 3; ++c) {
    connect([&, c](KvSession& session, Thread& thread) -> Task<> {
      int ended = 0;
      auto lane = [&](std::uint64_t id) -> Task<> {
        Buffer into(4096);
        for (std::uint64_t i = 0; i < 300; ++i) {
          const std::uint64_t number = c * 100 + id * 10 + i % 4;
          const Buffer key = key_of(number);
          const Buffer value = value_of(number, i, i % 5 == 0 ? 40 : 64);
          EXPECT_TRUE((co_await session.put(key, value)).has_value());
          const auto got = co_await session.get(key, into);
          EXPECT_TRUE(got.has_value());
          if (got) {
            EXPECT_EQ(version_of(number, std::span(into).first(*got)), i);
          }
        }
        ++ended;
      };
      for (std::uint64_t id = 0; id < 4; ++id) thread.executor.spawn(lane(id));
      while (ended < 4) co_await sleep_for(Microseconds(10));
      std::atomic_ref(retries) += session.counts().retries;
    });
  }
  run();
  EXPECT_GT(retries, 0u);
  EXPECT_LT(retries, 3u * 4 * 300) << "more refused than taken";
}

TEST_P(RedoLogging, NoMoreSessionsConnectThanTheLogHasRoomFor) {
  config_.sessions = 2;
  serve();
  platform().start(1, 20, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto first = co_await system().connect(thread, {0, 0}, config_);
    auto second = co_await system().connect(thread, {0, 0}, config_);
    bool refused = false;
    try {
      const auto third = co_await system().connect(thread, {0, 0}, config_);
    } catch (const PlatformError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    // The place of one that leaves is free again.
    second.reset();
    std::unique_ptr<KvSession> fourth;
    while (fourth == nullptr) {
      try {
        fourth = co_await system().connect(thread, {0, 0}, config_);
      } catch (const PlatformError&) {
        // The server has not seen yet that it has left.
      }
    }
    const Buffer key = key_of(1);
    const Buffer value = value_of(1, 1, 64);
    EXPECT_TRUE((co_await fourth->put(key, value)).has_value());
  });
  run();
}

TEST_P(RedoLogging, ALogTooShortForItsSessionsIsRefused) {
  config_.sessions = 8;
  config_.parameters = {{"log_slots", 15}};
  std::string refusal;
  platform().start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    try {
      system().open(thread, "pool", config_);
    } catch (const UsageError& error) {
      refusal = error.what();
    }
    co_return;
  });
  run();
  EXPECT_EQ(refusal, "redo-logging: log_slots is 15, but must be 16 to 16777216");
}

// "The server verifies the integrity of the message in the redo log and applies the write request
// asynchronously" (section 5.1): a completed put is flushed, once, and settled later.
TEST_P(RedoLogging, ACompletedPutIsFlushedInTheLogAndAppliedLater) {
  const auto barrier = platform().create_barrier(2);
  pmem::Writes before;
  pmem::Writes completed;
  pmem::Writes settled;
  auto watch = [&](KvPartition& partition, Node& node) -> Task<> {
    co_await barrier->arrive_and_wait();
    before = node.pm_writes();
    co_await barrier->arrive_and_wait();
    co_await barrier->arrive_and_wait();
    completed = node.pm_writes();
    co_await partition.settle();
    settled = node.pm_writes();
    co_await barrier->arrive_and_wait();
  };
  platform().start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto partition = system().open(thread, "pool", config_);
    thread.executor.spawn(watch(*partition, thread.node));
    co_await partition->serve();
  });
  connect([&](KvSession& session, Thread&) -> Task<> {
    co_await barrier->arrive_and_wait();
    co_await barrier->arrive_and_wait();
    const Buffer key = key_of(1);
    const Buffer value = value_of(1, 1, 64);
    EXPECT_TRUE((co_await session.put(key, value)).has_value());
    co_await barrier->arrive_and_wait();
    co_await barrier->arrive_and_wait();
  });
  run();
  completed -= before;
  settled -= before;
  EXPECT_GE(completed.local_store.flushes, 2u) << "the record of 84 bytes";
  EXPECT_GE(completed.local_store.fences, 1u);
  EXPECT_EQ(settled.local_store.field_bits / 8, 16u + 64 + 16 + 8) << "object and entry";
}

}  // namespace
}  // namespace perdura::systems::test
