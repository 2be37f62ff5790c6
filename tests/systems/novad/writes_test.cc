// Writes in place (the parameter `writes`): one WRITE each, to the same bytes that requests and
// other clients write to.
#include <functional>

#include "explore/explored.h"
#include "platform/sim/failures.h"
#include "platform/sim/sim_platform.h"
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
// Any session of a mount may sync, and only a READ of the one that has written tells that the data
// has arrived.
TEST_P(NovadWrites, OfAMountWithSeveralSessionsAreFollowedByARead) {
  const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 1));
  Home home(kNovad, kInPlace);
  home.start(*platform);
  platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    const fs::InodeNumber file = co_await open_new(*session, "a", filled(10000, 'a'));
    for (const bool alone : {true, false}) {
      const auto other = alone ? nullptr : files->attach(thread);
      const SessionCounts before(*session);
      EXPECT_TRUE((co_await session->write(file, 0, filled(10, 'b'), {})).has_value());
      const SessionCounts after(*session);
      EXPECT_EQ(after.writes, before.writes + 1);
      EXPECT_EQ(after.reads, before.reads + (alone ? 0 : 1));
    }
  });
  platform->run();
}

// A WRITE that has been acknowledged may not be in memory yet; a READ after it on the same
// connection tells that it is. Without the connection nobody can tell, and a sync must not succeed.
TEST_P(NovadWrites, AreNotSyncedIfTheirConnectionHasBroken) {
  for (const bool is_replaced : {false, true}) {
    run([is_replaced](fs::Session& one, fs::Session& other) -> Task<> {
      const fs::InodeNumber file = co_await open_new(one, "a", filled(10000, 'a'));
      const fs::InodeNumber second = co_await open_new(one, "b", filled(10000, 'a'));
      const fs::InodeNumber third = co_await open_new(one, "c", filled(10000, 'a'));
      EXPECT_TRUE((co_await one.write(file, 0, filled(100, 'b'), {})).has_value());
      EXPECT_TRUE((co_await one.write(second, 0, filled(100, 'b'), {})).has_value());
      // A WRITE that is refused ends the connection; the next READ makes another.
      EXPECT_TRUE((co_await other.truncate(third, 0, {})).has_value());
      EXPECT_TRUE((co_await one.write(third, 5000, filled(10, 'b'), {})).has_value());
      EXPECT_EQ(SessionCounts(one).refused, 1);
      if (is_replaced) {
        EXPECT_EQ(co_await text_of(one, file, 99, 2), "ba");
      }
      EXPECT_EQ((co_await one.sync(file)), tl::unexpected(std::errc::io_error));
      EXPECT_EQ((co_await one.sync_all()), tl::unexpected(std::errc::io_error));
      // It is said once of each file. What was written by a request is known to be there.
      EXPECT_TRUE((co_await one.sync(second)).has_value());
      EXPECT_TRUE((co_await one.sync(third)).has_value());
      EXPECT_TRUE((co_await one.write(file, 0, filled(100, 'c'), {})).has_value());
      EXPECT_TRUE((co_await one.sync(file)).has_value());
      EXPECT_TRUE((co_await one.sync_all()).has_value());
    });
  }
}

// A sync is one message, too, if devices commit.
TEST(NovadWritesOnAModel, AreSyncedByOneCommit) {
  run_with_idle_server(
      kInPlace,
      [](fs::Session& session, const CpuTime& cpu) -> Task<> {
        const fs::InodeNumber file = co_await open_new(session, "a", filled(64 * KiB, 'a'));
        EXPECT_TRUE((co_await session.write(file, 0, filled(1, 'x'), {})).has_value());
        co_await sleep_for(Microseconds(100));
        const SessionCounts before(session);
        const Picoseconds cpu_before = cpu();
        for (int i = 0; i < 3; ++i) {
          EXPECT_TRUE((co_await session.write(file, 8192, filled(4096, 'b'), {})).has_value());
          EXPECT_TRUE((co_await session.sync(file)).has_value());
        }
        EXPECT_EQ(cpu(), cpu_before);
        const SessionCounts after(session);
        EXPECT_EQ(after.rpcs, before.rpcs);
        EXPECT_EQ(after.reads, before.reads);
        EXPECT_EQ(after.commits, before.commits + 3);
        EXPECT_EQ(after.refused, 0);
      },
      true);
}

// The power of the server fails when `syncs` has ended, and leaves as little as it may of what it
// has synced: 100 a, 5000 b, 4900 a.
using Syncs = std::function<Task<>(Thread&, fs::FileSystem& files, fs::FileSystem& others)>;
void expect_durable(const pmem::PersistenceModel& model, bool commits, const Syncs& syncs) {
  sim::SimPlatform platform(testbed(commits), 3);
  platform.track_durability(model);
  Home home(kNovad, kInPlace);
  home.start(platform);
  bool has_failed = false;
  platform.start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto others = co_await home.mount(thread);
    co_await syncs(thread, *files, *others);
    platform.at(thread.executor.now(), [&] {
      pmem::LeastChoices least;
      platform.fail_power(kServer, least);
      home.start(platform);
      has_failed = true;
    });
    while (!has_failed) co_await sleep_for(Microseconds(1));
  });
  platform.start(home.client(1), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!has_failed) co_await sleep_for(Microseconds(1));
    co_await home.wait();
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    const auto file = co_await session->look_up(fs::kRootInode, "a");
    EXPECT_TRUE(file.has_value());
    if (!file) co_return;
    const std::string text = co_await text_of(*session, file->inode, 0, 10000);
    EXPECT_TRUE(text == std::string(100, 'a') + std::string(5000, 'b') + std::string(4900, 'a'))
        << explore::explored_name(model) << (commits ? ", commits" : "");
  });
  platform.run();
}

Task<fs::InodeNumber> open_and_write(fs::Session& session) {
  const fs::InodeNumber file = co_await open_new(session, "a", filled(10000, 'a'));
  EXPECT_TRUE((co_await session.write(file, 100, filled(5000, 'b'), {})).has_value());
  EXPECT_EQ(SessionCounts(session).writes, 1);
  co_return file;
}

TEST(NovadWritesOnAModel, AreDurableAfterASync) {
  for (const bool commits : {false, true}) {
    for (const pmem::PersistenceModel& model : explore::explored_models()) {
      expect_durable(model, commits,
                     [commits](Thread& thread, fs::FileSystem& files, fs::FileSystem&) -> Task<> {
                       const auto session = files.attach(thread);
                       const fs::InodeNumber file = co_await open_and_write(*session);
                       EXPECT_TRUE((co_await session->sync(file)).has_value());
                       EXPECT_EQ(SessionCounts(*session).reads, commits ? 0 : 1)
                           << "it tells that the data has arrived";
                       EXPECT_EQ(SessionCounts(*session).commits, commits ? 1 : 0);
                     });
    }
  }
}

TEST(NovadWritesOnAModel, AreDurableAfterASyncOfAllFiles) {
  for (const bool commits : {false, true}) {
    for (const pmem::PersistenceModel& model : explore::explored_models()) {
      expect_durable(model, commits,
                     [](Thread& thread, fs::FileSystem& files, fs::FileSystem&) -> Task<> {
                       const auto session = files.attach(thread);
                       co_await open_and_write(*session);
                       EXPECT_TRUE((co_await session->sync_all()).has_value());
                     });
    }
  }
}

// Whoever syncs a file syncs all of it.
TEST(NovadWritesOnAModel, AreDurableAfterASyncByAnotherMount) {
  for (const pmem::PersistenceModel& model : explore::explored_models()) {
    expect_durable(model, true,
                   [](Thread& thread, fs::FileSystem& files, fs::FileSystem& others) -> Task<> {
                     const auto session = files.attach(thread);
                     const fs::InodeNumber file = co_await open_and_write(*session);
                     const auto other = others.attach(thread);
                     EXPECT_TRUE((co_await other->hold(file)).has_value());
                     EXPECT_TRUE((co_await other->sync(file)).has_value());
                     EXPECT_EQ(SessionCounts(*other).commits, 1);
                   });
  }
}

// A filekey has ended with the last hold. The next one is committed on its own, and knows nothing
// of what was written by the one before.
TEST(NovadWritesOnAModel, AreDurableAfterASyncByALaterFilekey) {
  for (const pmem::PersistenceModel& model : explore::explored_models()) {
    expect_durable(model, true,
                   [](Thread& thread, fs::FileSystem& files, fs::FileSystem& others) -> Task<> {
                     const auto session = files.attach(thread);
                     const fs::InodeNumber file = co_await open_and_write(*session);
                     co_await session->release(file, 1);
                     const auto other = others.attach(thread);
                     EXPECT_TRUE((co_await other->hold(file)).has_value());
                     EXPECT_TRUE((co_await other->sync(file)).has_value());
                     EXPECT_EQ(SessionCounts(*other).commits, 1);
                   });
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, NovadWrites, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::novad::test
