// Read After Write beyond what every key-value system must do (tests/systems/kv).
#include "methods/chooser.h"
#include "methods/durable_write.h"
#include "platform/faults/faulty_thread.h"
#include "platform/sim/sim_platform.h"
#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {
namespace {

std::vector<Subject> subjects() {
  std::vector<Subject> found;
  for (const Subject& subject : all_subjects()) {
    if (subject.system == "read-after-write") found.push_back(subject);
  }
  return found;
}

class ReadAfterWrite : public KvTest {};
INSTANTIATE_TEST_SUITE_P(All, ReadAfterWrite, testing::ValuesIn(subjects()), subject_name);

// With two slots nearly every put finds the ring full, and every delete finds records before it.
TEST_P(ReadAfterWrite, RequestsWaitForRoomInTheRing) {
  config_.parameters = {{"log_slots", 2}};
  serve();
  for (std::uint64_t c = 0; c < 3; ++c) {
    connect([c](kv::KvSession& session, Thread& thread) -> Task<> {
      int ended = 0;
      auto lane = [&](std::uint64_t id) -> Task<> {
        Buffer into(4096);
        for (std::uint64_t i = 0; i < 100; ++i) {
          const std::uint64_t number = c * 100 + id * 10 + i % 3;
          const Buffer key = key_of(number);
          const Buffer value = value_of(number, i, 64);
          EXPECT_TRUE((co_await session.put(key, value)).has_value());
          const auto got = co_await session.get(key, into);
          EXPECT_TRUE(got.has_value());
          if (got) {
            EXPECT_EQ(version_of(number, std::span(into).first(*got)), i);
          }
          if (i % 4 != 0) continue;
          EXPECT_TRUE((co_await session.erase(key)).has_value());
          EXPECT_FALSE((co_await session.get(key, into)).has_value());
        }
        ++ended;
      };
      for (std::uint64_t id = 0; id < 4; ++id) thread.executor.spawn(lane(id));
      while (ended < 4) co_await sleep_for(Microseconds(10));
    });
  }
  run();
}

// A put that would find room if reservations of others came to nothing waits for them, and is
// refused only when the store itself is full.
TEST_P(ReadAfterWrite, ClientsThatCreateTheSameLastKeyAllSucceed) {
  config_.records = 10;
  config_.parameters = {{"long_keys", 0}};
  serve();
  const auto barrier = platform().create_barrier(3);
  std::atomic<int> refused{0};
  for (std::uint64_t c = 0; c < 3; ++c) {
    connect([&, c](kv::KvSession& session, Thread&) -> Task<> {
      const Buffer value = value_of(0, c + 1, 64);
      for (std::uint64_t number = 0; c == 0 && number < 9; ++number) {
        const Buffer key = key_of(number);
        EXPECT_TRUE((co_await session.put(key, value)).has_value());
      }
      co_await barrier->arrive_and_wait();
      const Buffer last = key_of(9);
      EXPECT_TRUE((co_await session.put(last, value)).has_value());
      co_await barrier->arrive_and_wait();
      const Buffer another = key_of(10 + c);
      const auto put = co_await session.put(another, value);
      refused += !put && put.error() == kv::Error::out_of_space ? 1 : 0;
    });
  }
  run();
  EXPECT_EQ(refused, 3);
}

// "The server CPU polls for these operations asynchronously from ring buffers and applies them"
// (section 5.1): without any other request, and not at all when nothing is reserved.
TEST(ReadAfterWriteOnSim, TheRingIsPolledOnlyWhileASlotIsReserved) {
  const auto platform = perdura::test::make_platform("sim", 2);
  kv::KvConfig config;
  const kv::KvSystem& system = find_kv_system("read-after-write");
  platform->start_service(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto partition = system.open(thread, "pool", config);
    co_await partition->serve();
  });
  Node& server = *platform->local_node(0);
  platform->start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto session = co_await system.connect(thread, {0, 0}, config);
    const Buffer key = key_of(1);
    const Buffer value = value_of(1, 1, 64);
    EXPECT_TRUE((co_await session->put(key, value)).has_value());
    co_await sleep_for(Microseconds(300));
    EXPECT_EQ(server.pm_writes().one_sided.field_bits / 8, 4u + 16 + 64) << "the record";
    EXPECT_GE(server.pm_writes().local_store.field_bits / 8, 2 * 16u + 64 + 8) << "applied";
    const Picoseconds used = server.cpu_time();
    co_await sleep_for(std::chrono::seconds(1));
    EXPECT_EQ(server.cpu_time(), used);
  });
  platform->run();
}

// With DDIO and volatile caches the client asks the server to make the record durable. When a slow
// client's question arrives, its record may have been applied long ago and the slot been given to
// another one, which is not complete yet.
TEST(ReadAfterWriteOnSim, ARecordIsDurableAlthoughItsSlotBelongsToAnotherAlready) {
  const auto platform = perdura::test::make_platform("sim", 3);
  const kv::KvSystem& system = find_kv_system("read-after-write");
  const pmem::PersistenceModel server{.domain = pmem::PersistenceDomain::dmp, .ddio = true};
  kv::KvConfig config;
  config.parameters = {{"log_slots", 2}};
  config.put_method = methods::choose({{server}}, *system.put, {});
  ASSERT_TRUE(methods::DurableWrite(*config.put_method, {}).asks_responder());
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto partition = system.open(thread, "pool", config);
    co_await partition->serve();
  });
  bool slow_is_done = false;
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    constexpr Picoseconds kLate = Microseconds(100);
    faults::FaultyThread slow(thread, {.slow = {kLate, kLate}});
    const auto session = co_await system.connect(slow.thread(), {0, 0}, config);
    for (std::uint64_t version = 1; version <= 50; ++version) {
      const Buffer key = key_of(1);
      const Buffer value = value_of(1, version, 64);
      const kv::Result<void> put = co_await session->put(key, value);
      EXPECT_TRUE(put) << to_string(put.error()) << ", version " << version;
    }
    slow_is_done = true;
  });
  std::uint64_t puts = 0;
  platform->start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await system.connect(thread, {0, 0}, config);
    for (; !slow_is_done; ++puts) {
      const Buffer key = key_of(2);
      const Buffer value = value_of(2, puts, 64);
      const kv::Result<void> put = co_await session->put(key, value);
      EXPECT_TRUE(put) << to_string(put.error());
    }
  });
  platform->run();
  EXPECT_GT(puts, 500U) << "the ring went around";
}

// A client that dies with a slot reserved must not block the ring.
TEST(ReadAfterWriteOnSim, AReservationOfADeadClientIsGivenUp) {
  int died_with_a_reservation = 0;
  for (int kill = 0; kill < 60; ++kill) {
    SCOPED_TRACE(testing::Message() << "kill " << kill);
    const auto made = perdura::test::make_platform("sim", 3);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    kv::KvConfig config;
    config.value_size = config.max_value_size = 4096;
    config.parameters = {{"log_slots", 2}};
    const kv::KvSystem& system = find_kv_system("read-after-write");
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto partition = system.open(thread, "pool", config);
      co_await partition->serve();
    });
    std::uint64_t acknowledged = 0;
    platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system.connect(thread, {0, 0}, config);
      const Buffer key = key_of(1);
      for (std::uint64_t version = 1;; ++version) {
        const Buffer value = value_of(1, version, 4096);
        EXPECT_TRUE((co_await session->put(key, value)).has_value());
        acknowledged = version;
      }
    });
    platform.at(Time(Microseconds(500)) + Nanoseconds(733) * kill, [&] { platform.kill(1); });
    platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system.connect(thread, {0, 0}, config);
      co_await sleep_for(std::chrono::seconds(2));
      Buffer into(4096);
      const Buffer key = key_of(1);
      const auto got = co_await session->get(key, into);
      EXPECT_TRUE(got.has_value());
      if (got) {
        const auto version = version_of(1, std::span(into).first(*got));
        EXPECT_TRUE(version == acknowledged || version == acknowledged + 1);
        died_with_a_reservation += version == acknowledged ? 1 : 0;
      }
      for (std::uint64_t number = 0; number < 10; ++number) {
        const Buffer other = key_of(number);
        const Buffer value = value_of(number, 7, 4096);
        EXPECT_TRUE((co_await session->put(other, value)).has_value());
      }
      EXPECT_TRUE((co_await session->erase(key)).has_value());
    });
    platform.run();
    EXPECT_GT(acknowledged, 0u);
  }
  EXPECT_GT(died_with_a_reservation, 10);
}

}  // namespace
}  // namespace perdura::systems::test
