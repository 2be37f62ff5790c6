// Log cleaning of Erda (section 4.4) under clients that read and write all the time.
#include "platform/runtime/work.h"
#include "tests/systems/erda/support.h"

namespace perdura::systems::test {
namespace {

class Cleaning : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { platform_ = perdura::test::make_platform(GetParam(), 4); }

  void start_server(const kv::KvConfig& config) {
    platform_->start_service(0, 0, CompletionMode::polling, [this, config](Thread& thread) {
      return serve(thread, config, &space_);
    });
  }
  using Client = std::function<Task<>(kv::KvSession&, Thread&)>;
  void start_client(const kv::KvConfig& config, Client client) {
    const std::uint32_t number = next_client_++;
    platform_->start(
        1 + number % 3, static_cast<fabric::Port>(1 + number), CompletionMode::polling,
        [config, recorded = recording_.of(std::move(client))](Thread& thread) -> Task<> {
          const auto session = co_await connect(thread, config);
          co_await recorded(*session, thread);
        });
  }
  // Puts, deletes and gets of keys that all clients share.
  static Client mixed(std::uint32_t number, std::uint64_t keys, int operations);

  void expect_linearizable() {
    const history::CheckResult verdict = history::check(recording_.history());
    EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  }

  std::unique_ptr<Platform> platform_;
  Gauge space_;
  Recording recording_;
  std::uint32_t next_client_ = 0;
};
INSTANTIATE_TEST_SUITE_P(All, Cleaning, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& tested) { return tested.param; });

Cleaning::Client Cleaning::mixed(std::uint32_t number, std::uint64_t keys, int operations) {
  return [=](kv::KvSession& session, Thread&) -> Task<> {
    std::mt19937_64 random(number);
    Versions versions(number);
    Buffer into(4 * kValue);
    for (int i = 0; i < operations; ++i) {
      const std::uint64_t key_number = random() % keys;
      const Buffer key = key_of(key_number);
      const auto action = random() % 10;
      if (action < 5) {
        const Buffer value = value_of(key_number, versions.next(), kValue);
        expect_space(co_await session.put(key, value));
      } else if (action < 6) {
        expect_space(co_await session.erase(key));
      } else {
        expect_space(co_await session.get(key, into));
      }
    }
  };
}

// 300 keys of 88 bytes in 64 KiB, whatever the shape.
class Shapes : public Cleaning {
 protected:
  void run(const Shape& shape) {
    ASSERT_EQ(shape.size(), 64 * KiB);
    const kv::KvConfig config = config_of(shape, 300);
    start_server(config);
    for (std::uint32_t client = 0; client < 3; ++client) {
      start_client(config, mixed(client, 300, 6000));
    }
    platform_->run();
    expect_linearizable();
    // 9,000 puts and 1,800 deletes write 850 KiB; half of the space at most comes free at a time.
    EXPECT_GT(space_.last().cleanings, 20U);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Shapes, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& tested) { return tested.param; });

TEST_P(Shapes, OneHeadOfTwoRegions) { run({1, 2, 32 * KiB, 32 * KiB}); }
TEST_P(Shapes, OneHeadOfManyRegions) { run({1, 16, 4 * KiB, 1 * KiB}); }
TEST_P(Shapes, HeadsThatShareRegions) { run({4, 16, 4 * KiB, 4 * KiB}); }
TEST_P(Shapes, HeadsThatShareSmallRegions) { run({4, 64, 1 * KiB, 1 * KiB}); }

// Objects of other than the typical sizes, and keys longer than an entry holds.
TEST_P(Cleaning, KeepsObjectsOfAllSizes) {
  const kv::KvConfig config = config_of({2, 32, 8 * KiB, 8 * KiB}, 100);
  start_server(config);
  start_client(config, [](kv::KvSession& session, Thread&) -> Task<> {
    std::mt19937_64 random(1);
    Versions versions(0);
    Buffer into(4 * kValue);
    for (int i = 0; i < 6000; ++i) {
      const std::uint64_t number = random() % 100;
      const Buffer key = key_of(number, 8 + number % 60);
      const Buffer value = value_of(number, versions.next(), 8 + random() % (4 * kValue - 8));
      expect_space(co_await session.put(key, value));
      if (i % 3 == 0) expect_space(co_await session.get(key, into));
    }
  });
  platform_->run();
  expect_linearizable();
  EXPECT_GT(space_.last().cleanings, 5U);
}

// Entries of deleted keys leave with their objects: else the table would be full after 100 keys,
// and a few deletes more.
TEST_P(Cleaning, DeletedKeysMakeRoomForOthers) {
  constexpr std::uint64_t kAlive = 100;
  const kv::KvConfig config = config_of({2, 32, 2 * KiB, 1 * KiB}, kAlive);
  start_server(config);
  start_client(config, [](kv::KvSession& session, Thread&) -> Task<> {
    for (std::uint64_t number = 0; number < 50 * kAlive; ++number) {
      const Buffer key = key_of(number);
      const Buffer value = value_of(number, 1, kValue);
      const auto put = co_await session.put(key, value);
      EXPECT_TRUE(put) << "key " << number << ": " << (put ? "" : to_string(put.error()));
      if (!put) co_return;
      if (number < kAlive / 2) continue;
      const Buffer old_key = key_of(number - kAlive / 2);
      EXPECT_TRUE(co_await session.erase(old_key));
    }
  });
  platform_->run();
  expect_linearizable();
}

TEST_P(Cleaning, ClientsMayComeAndGo) {
  const kv::KvConfig config = config_of({2, 32, 2 * KiB, 1 * KiB}, 200);
  start_server(config);
  start_client(config, mixed(0, 200, 12'000));
  for (std::uint32_t client = 1; client < 3; ++client) {
    start_client(config, [=](kv::KvSession& first, Thread& thread) -> Task<> {
      co_await mixed(client, 200, 50)(first, thread);
    });
  }
  // Sessions of a few operations each, unrecorded ones that only read.
  platform_->start(3, 90, CompletionMode::polling, [=](Thread& thread) -> Task<> {
    std::mt19937_64 random(90);
    Buffer into(4 * kValue);
    for (int i = 0; i < 300; ++i) {
      const auto session = co_await connect(thread, config);
      for (int n = 0; n < 5; ++n) {
        const std::uint64_t number = random() % 200;
        const Buffer key = key_of(number);
        const auto got = co_await session->get(key, into);
        expect_space(got);
        if (got) {
          EXPECT_TRUE(version_of(number, std::span(into).first(*got)).has_value());
        }
      }
    }
  });
  platform_->run();
  expect_linearizable();
  EXPECT_GT(space_.last().cleanings, 10U);
}

// A full store refuses new keys, keeps what it has, and takes updates and deletes as long as they
// can be paid for by what they supersede.
TEST_P(Cleaning, AFullStoreRefusesAndLosesNothing) {
  const kv::KvConfig config = config_of({1, 8, 2 * KiB, 2 * KiB}, 1000);
  start_server(config);
  start_client(config, [](kv::KvSession& session, Thread&) -> Task<> {
    std::uint64_t stored = 0;
    for (bool full = false; !full;) {
      const Buffer key = key_of(stored);
      const Buffer value = value_of(stored, 1, kValue);
      const auto put = co_await session.put(key, value);
      full = !put;
      if (put) {
        ++stored;
      } else {
        EXPECT_EQ(put.error(), kv::Error::out_of_space);
      }
    }
    // Half of 16 KiB, in segments of 23 objects.
    EXPECT_GE(stored, 3 * 23U);
    EXPECT_LE(stored, 4 * 23U);
    Buffer into(4 * kValue);
    for (std::uint64_t number = 0; number < stored; ++number) {
      const Buffer key = key_of(number);
      const auto got = co_await session.get(key, into);
      EXPECT_TRUE(got.has_value()) << number;
    }
  });
  platform_->run();
  expect_linearizable();
}

// One that computes for longer than the server is patient loses its connection; the others go on.
TEST_P(Cleaning, DoesNotWaitForEver) {
  kv::KvConfig config = config_of({1, 8, 2 * KiB, 2 * KiB}, 30);
  config.parameters["client_timeout_ms"] = 500;
  start_server(config);
  std::atomic<bool> stuck{false};
  std::atomic<bool> others_ended{false};
  start_client(config, [&](kv::KvSession& session, Thread& thread) -> Task<> {
    const Buffer key = key_of(1);
    const Buffer value = value_of(1, 1, kValue);
    EXPECT_TRUE(co_await session.put(key, value));
    stuck = true;
    // It neither polls nor suspends.
    const Time start = thread.executor.now();
    if (platform_->modelled()) {
      charge(Work::copy, Bytes{1} << 34);
    } else {
      while (!others_ended && thread.executor.now() - start < std::chrono::seconds(60)) {
        std::this_thread::yield();
      }
    }
    co_await yield();
    Buffer into(4 * kValue);
    const auto got = co_await session.get(key, into);
    EXPECT_FALSE(got.has_value());
    if (!got) {
      EXPECT_EQ(got.error(), kv::Error::disconnected);
    }
  });
  start_client(config, [&](kv::KvSession& session, Thread& thread) -> Task<> {
    while (!stuck) co_await sleep_for(Microseconds(1));
    co_await mixed(1, 30, 3000)(session, thread);
    others_ended = true;
  });
  platform_->run();
  expect_linearizable();
  EXPECT_GT(space_.last().cleanings, 5U);
}

}  // namespace
}  // namespace perdura::systems::test
