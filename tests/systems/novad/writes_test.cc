// Writes in place (the parameter `writes`): one WRITE each, to the same bytes that requests and other
// clients write to.
#include <functional>

#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {
namespace {

const fs::FsConfig kInPlace{
    .size = 4 * MiB, .threads = 2, .parameters = {{"writes", std::string("in-place")}}};

TEST(NovadWritesOnAModel, AreOneMessageEachAndTakeNoTimeOfTheServer) {
  run_with_idle_server(kInPlace, [](fs::Session& session, const CpuTime& cpu) -> Task<> {
    const fs::InodeNumber file = co_await open_new(session, "a", filled(64 * KiB, 'a'));
    EXPECT_TRUE((co_await session.write(file, 0, filled(1, 'x'), {})).has_value());
    co_await sleep_for(Microseconds(100));
    const SessionCounts before(session);
    const Picoseconds cpu_before = cpu();
    constexpr int kWrites = 50;
    for (int i = 0; i < kWrites; ++i) {
      const auto data = filled(4096, static_cast<char>('a' + i % 26));
      EXPECT_TRUE(
          (co_await session.write(file, static_cast<Bytes>(i * 1000), data, {})).has_value());
      EXPECT_EQ(co_await text_of(session, file, static_cast<Bytes>(i * 1000), 1),
                std::string(1, static_cast<char>('a' + i % 26)));
    }
    EXPECT_EQ(cpu(), cpu_before);
    const SessionCounts after(session);
    EXPECT_EQ(after.rpcs, before.rpcs);
    EXPECT_EQ(after.writes, before.writes + kWrites);
    EXPECT_EQ(after.refused, 0);
  });
}

class NovadWrites : public testing::TestWithParam<std::string> {
 protected:
  using Body = std::function<Task<>(fs::Session& one, fs::Session& other)>;

  // Runs `body` with the sessions of two mounts.
  void run(const Body& body) {
    const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 1));
    Home home(kNovad, kInPlace);
    home.start(*platform);
    platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await home.make(thread, {});
      const auto files = co_await home.mount(thread);
      const auto others = co_await home.mount(thread);
      const auto one = files->attach(thread);
      const auto other = others->attach(thread);
      co_await body(*one, *other);
      EXPECT_EQ(co_await home.audit(), "");
    });
    platform->run();
  }
};

// The other mount does not hold the file, so it reads and writes by requests.
TEST_P(NovadWrites, AndRequestsChangeTheSameBytes) {
  run([](fs::Session& one, fs::Session& other) -> Task<> {
    const fs::InodeNumber file = co_await open_new(one, "a", filled(10000, 'a'));
    EXPECT_TRUE((co_await one.write(file, 4095, filled(2, 'b'), {})).has_value());
    EXPECT_EQ(SessionCounts(one).writes, 1);
    EXPECT_EQ(co_await text_of(other, file, 4094, 4), "abba");
    // Both write to the same page.
    EXPECT_TRUE((co_await other.write(file, 4090, filled(2, 'c'), {})).has_value());
    EXPECT_TRUE((co_await one.write(file, 4092, filled(2, 'd'), {})).has_value());
    EXPECT_EQ(SessionCounts(one).writes, 2);
    EXPECT_EQ(co_await text_of(one, file, 4090, 6), "ccddab");
    EXPECT_EQ(co_await text_of(other, file, 4090, 6), "ccddab");
    EXPECT_TRUE((co_await one.sync(file)).has_value());
    EXPECT_EQ(SessionCounts(other).writes, 0);
  });
}

TEST_P(NovadWrites, BeyondTheEndAreRequests) {
  run([](fs::Session& one, fs::Session& other) -> Task<> {
    const fs::InodeNumber file = co_await open_new(one, "a", filled(10000, 'a'));
    EXPECT_TRUE((co_await one.write(file, 9999, filled(2, 'b'), {})).has_value());
    EXPECT_EQ(SessionCounts(one).writes, 0);
    EXPECT_EQ(co_await text_of(other, file, 9998, 5), "abb");
    // The file has been cut off without this client knowing it.
    EXPECT_TRUE((co_await other.truncate(file, 5000, {})).has_value());
    EXPECT_TRUE((co_await one.write(file, 6000, filled(3, 'c'), {})).has_value());
    EXPECT_EQ(SessionCounts(one).refused, 1);
    EXPECT_EQ((co_await other.attributes(file))->size, 6003U);
    EXPECT_EQ(co_await text_of(other, file, 4999, 3), std::string("a\0\0", 3));
    EXPECT_EQ(co_await text_of(one, file, 5999, 10), std::string("\0ccc", 4));
  });
}

// Blocks that a truncation has freed may be another file's.
TEST_P(NovadWrites, NeverReachAnotherFile) {
  run([](fs::Session& one, fs::Session& other) -> Task<> {
    const fs::InodeNumber file = co_await open_new(one, "a", filled(40000, 'a'));
    EXPECT_TRUE((co_await other.truncate(file, 0, {})).has_value());
    const fs::InodeNumber second = co_await open_new(other, "b", filled(40000, 'b'));
    for (Bytes at = 0; at < 40000; at += 1000) {
      EXPECT_TRUE((co_await one.write(file, at, filled(10, 'x'), {})).has_value());
    }
    EXPECT_EQ(co_await text_of(other, second, 0, 40000), std::string(40000, 'b'));
  });
}

INSTANTIATE_TEST_SUITE_P(Platforms, NovadWrites, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::novad::test
