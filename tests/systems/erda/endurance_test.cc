// A million updates of ten thousand keys, a quarter of that on real platforms, in a store of twice
// the live data: nothing is lost or stale, and it goes on for as long as one likes in the same
// space. Every operation is checked.
#include "tests/systems/erda/support.h"

namespace perdura::systems::test {
namespace {

constexpr std::uint64_t kEnduranceKeys = 10'000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kMillion = 100'000;
#else
constexpr std::uint64_t kMillion = 1'000'000;
#endif
constexpr std::uint32_t kClients = 3;
// Twice 10,000 objects, rounded up to a whole region.
constexpr Bytes kRegion = 16 * KiB;
constexpr std::uint64_t kRegions = (2 * kEnduranceKeys * kObject + kRegion - 1) / kRegion;
constexpr Shape kShape{8, kRegions, kRegion, kRegion};

class Endurance : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Endurance, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& tested) { return tested.param; });

TEST_P(Endurance, UpdatesInTwiceTheLiveData) {
  const std::uint64_t updates = GetParam() == "sim" ? kMillion : kMillion / 4;
  const auto platform = perdura::test::make_platform(GetParam(), 1 + kClients);
  const kv::KvConfig config = config_of(kShape, kEnduranceKeys);
  const auto loaded = platform->create_barrier(kClients);
  Gauge gauge;
  Recording recording(2 * (kEnduranceKeys + updates + updates / 4) / kClients);
  platform->start_service(0, 0, CompletionMode::polling,
                          [&](Thread& thread) { return serve(thread, config, &gauge); });
  for (std::uint32_t client = 0; client < kClients; ++client) {
    const auto work = recording.of([&, client](kv::KvSession& session, Thread&) -> Task<> {
      Versions versions(client);
      Buffer into(kValue);
      const auto put = [&](std::uint64_t number) -> Task<> {
        const Buffer key = key_of(number);
        const Buffer value = value_of(number, versions.next(), kValue);
        const auto done = co_await session.put(key, value);
        EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
      };
      const auto get = [&](std::uint64_t number) -> Task<> {
        const Buffer key = key_of(number);
        const auto got = co_await session.get(key, into);
        EXPECT_TRUE(got) << (got ? "" : to_string(got.error()));
      };
      for (std::uint64_t number = client; number < kEnduranceKeys; number += kClients) {
        co_await put(number);
      }
      co_await loaded->arrive_and_wait();
      std::mt19937_64 random(client);
      for (std::uint64_t i = client; i < updates; i += kClients) {
        co_await put(random() % kEnduranceKeys);
        if (random() % 4 == 0) co_await get(random() % kEnduranceKeys);
        if (HasFailure()) break;
      }
      co_await loaded->arrive_and_wait();
      for (std::uint64_t number = client; number < kEnduranceKeys; number += kClients) {
        co_await get(number);
      }
    });
    platform->start(1 + client, 1, CompletionMode::polling,
                    [&config, work](Thread& thread) -> Task<> {
                      const auto session = co_await connect(thread, config);
                      co_await work(*session, thread);
                    });
  }
  platform->run();
  const history::History history = recording.history();
  EXPECT_GE(history.size(), kEnduranceKeys + updates + kEnduranceKeys);
  const history::CheckResult verdict = history::check(history);
  EXPECT_TRUE(verdict.accepted());
  EXPECT_EQ(verdict.operations, history.size());
  const kv::KvSpace space = gauge.last();
  EXPECT_EQ(space.capacity, kRegions * kRegion);
  // All that was written is many times the capacity.
  EXPECT_GT(space.cleanings, updates * kObject / space.capacity);
  std::cout << GetParam() << ": " << describe(verdict) << "; " << space.cleanings
            << " cleanings of a head in " << space.capacity << " bytes\n";
}

}  // namespace
}  // namespace perdura::systems::test
