// Log cleaning of Erda (section 4.4) under clients that read and write all the time.
#include <map>
#include <random>

#include "tests/systems/kv/support.h"

namespace perdura::systems::test {
namespace {

class Cleaning : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { platform_ = perdura::test::make_platform(GetParam(), 4); }
  std::unique_ptr<Platform> platform_;
};
INSTANTIATE_TEST_SUITE_P(All, Cleaning, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& tested) { return tested.param; });

struct Shape {
  std::uint64_t heads;
  std::uint64_t regions;
  Bytes region;
  Bytes segment;
};

KvConfig config_of(const Shape& shape, std::uint64_t records) {
  return {.key_size = 16,
          .value_size = 64,
          .max_value_size = 256,
          .records = records,
          .writes = 1000,
          .sessions = 16,
          .parameters = {{"heads", shape.heads},
                         {"regions", shape.regions},
                         {"region_bytes", shape.region},
                         {"segment_bytes", shape.segment}}};
}

TEST_P(Cleaning, EndlessUpdatesFitIntoBoundedSpace) {
  constexpr std::uint64_t kKeys = 300;  // of 88 bytes: 26,400
  constexpr int kClients = 3;
  for (const Shape& shape : {Shape{1, 2, 32 * KiB, 32 * KiB}, Shape{1, 16, 4 * KiB, 1 * KiB},
                             Shape{4, 16, 4 * KiB, 4 * KiB}, Shape{4, 60, 1 * KiB, 1 * KiB}}) {
    SCOPED_TRACE(testing::Message()
                 << shape.heads << " heads, " << shape.regions << " regions of " << shape.region);
    platform_ = perdura::test::make_platform(GetParam(), 4);
    const KvConfig config = config_of(shape, kKeys);
    platform_->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto partition = find_kv_system("erda").open(thread, "pool", config);
      co_await partition->serve();
    });
    for (int client = 0; client < kClients; ++client) {
      platform_->start(
          1 + client, 1, CompletionMode::polling, [&, client](Thread& thread) -> Task<> {
            const auto session = co_await find_kv_system("erda").connect(thread, {0, 0}, config);
            std::mt19937_64 random(client);
            std::map<std::uint64_t, std::uint64_t> versions;
            Buffer into(256);
            for (std::uint64_t i = 1; i <= 6000; ++i) {
              const std::uint64_t number = random() % (kKeys / kClients) * kClients + client;
              const Buffer key = key_of(number);
              const auto action = random() % 10;
              if (action < 5) {
                const Buffer value = value_of(number, i, 64);
                const auto put = co_await session->put(key, value);
                EXPECT_TRUE(put) << "put " << i << ": " << (put ? "" : to_string(put.error()));
                versions[number] = i;
              } else if (action < 6) {
                const auto erased = co_await session->erase(key);
                EXPECT_EQ(erased.has_value(), versions.contains(number));
                versions.erase(number);
              } else {
                const auto got = co_await session->get(key, into);
                EXPECT_EQ(got.has_value(), versions.contains(number)) << "key " << number;
                if (got && versions.contains(number)) {
                  EXPECT_EQ(version_of(number, std::span(into).first(*got)), versions[number]);
                }
              }
              if (testing::Test::HasFailure()) co_return;
            }
          });
    }
    platform_->run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace perdura::systems::test
