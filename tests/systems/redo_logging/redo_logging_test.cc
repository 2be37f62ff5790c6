// Redo Logging beyond what every key-value system must do (tests/systems/kv).
#include <set>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/support.h"

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
    connect([&, c](kv::KvSession& session, Thread& thread) -> Task<> {
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
    std::unique_ptr<kv::KvSession> fourth;
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

constexpr std::uint64_t kSessions = 15;

// Every session inserts its share of the keys, as many at once as it may. Calls `acknowledged` for
// each put that ended well.
std::function<Task<>(kv::KvSession&, Thread&)> inserter(
    std::uint64_t session_number, std::uint64_t keys,
    std::function<void(std::uint64_t)> acknowledged) {
  return [=](kv::KvSession& session, Thread& thread) -> Task<> {
    constexpr std::uint64_t kLanes = 80;
    std::uint64_t ended = 0;
    const auto lane = [&](std::uint64_t first) -> Task<> {
      for (std::uint64_t number = first; number < keys; number += kSessions * kLanes) {
        const Buffer key = key_of(number);
        const Buffer value = value_of(number, 1, 64);
        const auto put = co_await session.put(key, value);
        if (put) {
          acknowledged(number);
        } else if (put.error() != kv::Error::disconnected) {
          ADD_FAILURE() << "key " << number << " of " << keys << ": " << to_string(put.error());
        }
      }
      ++ended;
    };
    for (std::uint64_t id = 0; id < kLanes; ++id) {
      thread.executor.spawn(lane(session_number * kLanes + id));
    }
    while (ended < kLanes) co_await sleep_for(Microseconds(10));
  };
}

// Buckets that are kept for inserts that are not applied yet stand in the way of others; but they
// are not taken. Full is what has as many keys as configured, and no sooner.
TEST_P(RedoLogging, IsFullOnlyWhenWhatIsNotAppliedYetDoesNotMatter) {
  if (!platform().modelled()) GTEST_SKIP() << "only a model has a thread for each client at hand";
  for (const std::uint64_t neighborhood : {2U, 4U, 8U}) {
    for (const std::uint64_t records : {100U, 700U, 1100U}) {
      SCOPED_TRACE(testing::Message() << records << " records, neighborhood " << neighborhood);
      SetUp();
      config_.records = records;
      config_.parameters = {{"neighborhood", neighborhood},
                            {"long_keys", 0},
                            {"queue_depth", 128},
                            {"log_slots", 8192}};
      next_client_ = 0;
      serve();
      std::atomic<std::uint64_t> stored{0};
      const auto barrier = platform().create_barrier(kSessions);
      for (std::uint64_t c = 0; c < kSessions; ++c) {
        connect([&, c](kv::KvSession& session, Thread& thread) -> Task<> {
          const auto insert = inserter(c, records, [&](std::uint64_t) { ++stored; });
          co_await insert(session, thread);
          co_await barrier->arrive_and_wait();
          if (c > 0) co_return;
          Buffer into(4096);
          for (std::uint64_t number = 0; number < records; ++number) {
            const Buffer key = key_of(number);
            const auto got = co_await session.get(key, into);
            EXPECT_TRUE(got && version_of(number, std::span(into).first(*got)) == 1) << number;
          }
          const Buffer key = key_of(records);
          const Buffer value = value_of(records, 1, 64);
          const auto more = co_await session.put(key, value);
          EXPECT_FALSE(more.has_value()) << "one key more than configured";
        });
      }
      run();
      EXPECT_EQ(stored, records);
    }
  }
}

// Recovery knows nothing of who kept which bucket, and finds one again for all.
TEST(RedoLoggingOnSim, WhatManyInsertsWereToldIsThereAfterAPowerFailure) {
  constexpr std::uint64_t kKeys = 1000;
  const kv::KvSystem& system = find_kv_system("redo-logging");
  kv::KvConfig config{.key_size = 16,
                      .value_size = 64,
                      .max_value_size = 64,
                      .records = kKeys,
                      .writes = 20000,
                      .sessions = kSessions + 1,
                      .parameters = {{"long_keys", 0}, {"queue_depth", 128}, {"log_slots", 8192}}};
  std::size_t most = 0;
  for (std::int64_t failure = 1; failure <= 12; ++failure) {
    SCOPED_TRACE(testing::Message() << "power failure after " << failure * 120 << " us");
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    platform.track_durability({pmem::PersistenceDomain::dmp, true});
    const auto server = [&](Thread& thread) -> Task<> {
      const auto partition = system.open(thread, "pool", config);
      co_await partition->serve();
    };
    platform.start_service(0, 0, CompletionMode::polling, server);
    std::set<std::uint64_t> acknowledged;
    for (std::uint64_t c = 0; c < kSessions; ++c) {
      platform.start(static_cast<NodeId>(1 + c % 3), static_cast<fabric::Port>(10 + c),
                     CompletionMode::polling, [&, c](Thread& thread) -> Task<> {
                       const auto session = co_await system.connect(thread, {0, 0}, config);
                       const auto insert = inserter(
                           c, kKeys, [&](std::uint64_t number) { acknowledged.insert(number); });
                       co_await insert(*session, thread);
                     });
    }
    platform.at(Time(Microseconds(120 * failure)), [&] {
      pmem::LeastChoices least;
      platform.fail_power(0, least);
      platform.start_service(0, 0, CompletionMode::polling, server);
      platform.start(3, 9, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        const auto session = co_await system.connect(thread, {0, 0}, config);
        Buffer into(4096);
        for (const std::uint64_t number : acknowledged) {
          const Buffer key = key_of(number);
          const auto got = co_await session->get(key, into);
          EXPECT_TRUE(got && version_of(number, std::span(into).first(*got)) == 1) << number;
        }
        most = std::max(most, acknowledged.size());
      });
    });
    platform.run();
  }
  EXPECT_GT(most, kKeys / 2) << "no failure came late";
}

// "The server verifies the integrity of the message in the redo log and applies the write request
// asynchronously" (section 5.1): a completed put is flushed, once, and settled later.
TEST_P(RedoLogging, ACompletedPutIsFlushedInTheLogAndAppliedLater) {
  const auto barrier = platform().create_barrier(2);
  pmem::Writes before;
  pmem::Writes completed;
  pmem::Writes settled;
  auto watch = [&](kv::KvPartition& partition, Node& node) -> Task<> {
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
  connect([&](kv::KvSession& session, Thread&) -> Task<> {
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
