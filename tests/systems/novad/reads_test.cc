// Reads of files that a client holds open (section 5.3.1): one READ each, whatever happens to the
// file.
#include <atomic>
#include <functional>

#include "platform/sim/sim_platform.h"
#include "systems/novad/counted.h"
#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {
namespace {

using Counts = SessionCounts;

class NovadReads : public testing::TestWithParam<std::string> {
 protected:
  using Body = std::function<Task<>(fs::Session& one, fs::Session& other, Platform& platform)>;

  // Runs `body` with the sessions of two mounts.
  void run(const Body& body) {
    const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 1));
    Home home(kNovad, {.size = 4 * MiB, .threads = 2});
    home.start(*platform);
    platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await home.make(thread, {});
      const auto files = co_await home.mount(thread);
      const auto others = co_await home.mount(thread);
      const auto one = files->attach(thread);
      const auto other = others->attach(thread);
      co_await body(*one, *other, *platform);
      EXPECT_EQ(co_await home.audit(), "");
    });
    platform->run();
  }
};

// Counted: the RPCs of the client, and the CPU time of the server, which waits for events.
TEST(NovadReadsOnAModel, AreOneMessageEachAndTakeNoTimeOfTheServer) {
  const fs::FsConfig config{.size = 4 * MiB, .threads = 2, .parameters = {}};
  run_with_idle_server(config, [](fs::Session& session, const CpuTime& cpu) -> Task<> {
    const fs::InodeNumber file = co_await open_new(session, "a", filled(64 * KiB, 'a'));
    // The first READ connects.
    EXPECT_EQ(co_await text_of(session, file, 0, 10), "aaaaaaaaaa");
    co_await sleep_for(Microseconds(100));
    const Counts before(session);
    const Picoseconds cpu_before = cpu();
    constexpr int kReads = 50;
    for (int i = 0; i < kReads; ++i) {
      EXPECT_EQ(co_await text_of(session, file, static_cast<Bytes>(i * 1000), 4096),
                std::string(4096, 'a'));
    }
    EXPECT_EQ(cpu(), cpu_before);
    const Counts after(session);
    EXPECT_EQ(after.rpcs, before.rpcs);
    EXPECT_EQ(after.reads, before.reads + kReads);
    EXPECT_EQ(after.refused, 0);
    // A read beyond the end is no READ, which would be refused and end the connection.
    EXPECT_EQ(co_await text_of(session, file, 64 * KiB - 4, 10), "aaaa");
    EXPECT_EQ(Counts(session).refused, 0);
    // A read by a request takes some.
    EXPECT_EQ(co_await text_of(session, file, 64 * KiB, 10), "");
    EXPECT_GT(cpu(), cpu_before);
  });
}

// Another client changes the file in each of the ways; the reader sees it at once.
TEST_P(NovadReads, SeeWhatOthersHaveDone) {
  run([](fs::Session& one, fs::Session& other, Platform&) -> Task<> {
    const fs::InodeNumber file = co_await open_new(one, "a", filled(20000, 'a'));
    EXPECT_EQ(co_await text_of(one, file, 8190, 4), "aaaa");
    EXPECT_TRUE((co_await other.write(file, 8192, filled(1, 'b'), {})).has_value());
    EXPECT_EQ(co_await text_of(one, file, 8190, 4), "aaba");
    EXPECT_TRUE((co_await other.append(file, filled(2, 'c'), {})).has_value());
    EXPECT_EQ(co_await text_of(one, file, 19998, 10), "aacc");
    EXPECT_EQ(co_await text_of(one, file, 19998, 4), "aacc");
    EXPECT_TRUE((co_await other.truncate(file, 19999, {})).has_value());
    EXPECT_EQ(co_await text_of(one, file, 19998, 4), "a");
    EXPECT_TRUE((co_await other.truncate(file, 20002, {})).has_value());
    EXPECT_EQ(co_await text_of(one, file, 19998, 4), std::string("a\0\0\0", 4));
    EXPECT_TRUE(
        (co_await other.allocate(file, fs::AllocationMode::punch, 4096, 4096, {})).has_value());
    EXPECT_EQ(co_await text_of(one, file, 4095, 3), std::string("a\0\0", 3));
    EXPECT_EQ(co_await text_of(one, file, 0, 2), "aa");
    EXPECT_TRUE((co_await other.write(file, 4096, filled(4096, 'd'), {})).has_value());
    EXPECT_EQ(co_await text_of(one, file, 4095, 3), "add");
    EXPECT_TRUE((co_await other.unlink(fs::kRootInode, "a", {})).has_value());
    EXPECT_EQ(co_await text_of(one, file, 4095, 3), "add");
    EXPECT_GE(Counts(one).reads, 4);
    co_await one.release(file, 1);
  });
}

// Fills the file system with two files in turn, and removes one of them.
Task<> leave_single_blocks(fs::Session& session) {
  const fs::InodeNumber stays = co_await open_new(session, "stays", filled(1, 's'));
  const fs::InodeNumber goes = co_await open_new(session, "goes", filled(1, 'g'));
  const auto block = filled(fs::kBlock, 'b');
  for (;;) {
    const auto one = co_await session.append(stays, block, {});
    const auto other = co_await session.append(goes, block, {});
    if (!one || !other) break;
  }
  EXPECT_TRUE((co_await session.unlink(fs::kRootInode, "goes", {})).has_value());
  co_await session.release(goes, 1);
  // The blocks that were kept in reserve are adjacent.
  co_await open_new(session, "reserve", filled(16 * fs::kBlock, 'r'));
}

// A file is overwritten again and again, by a client or by a program of the server's node, while
// its blocks, once given up, become another file's at once: a READ sees one of the writes,
// entirely.
void expect_whole_reads(std::unique_ptr<Platform> platform, bool is_fragmented,
                        bool is_local = false) {
  Home home(kNovad, {.size = 1 * MiB, .threads = 2});
  home.start(*platform);
  constexpr int kWrites = 400;  // and more, until there have been so many READs
  constexpr double kReads = 6;
  constexpr std::size_t kSize = 12000;
  std::atomic<std::uint64_t> inode{0};
  std::atomic<bool> ended{false};
  std::atomic<double> reads{0};
  const NodeId writer = is_local ? kServer : home.client(0);
  platform->start(writer, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    if (is_fragmented) co_await leave_single_blocks(*session);
    const fs::InodeNumber file = co_await open_new(*session, "a", filled(kSize, 'a'));
    const fs::InodeNumber second = co_await open_new(*session, "b", filled(kSize, '!'));
    inode = static_cast<std::uint64_t>(file);
    for (int i = 0; i < kWrites || (reads < kReads && !testing::Test::HasFailure()); ++i) {
      const char letter = static_cast<char>('a' + i % 26);
      EXPECT_TRUE((co_await session->write(file, 0, filled(kSize, letter), {})).has_value());
      EXPECT_TRUE((co_await session->write(second, 0, filled(kSize, '!'), {})).has_value());
      co_await yield();  // a local program does not wait for messages
    }
    ended = true;
    EXPECT_EQ(co_await home.audit(), "");
  });
  platform->start(home.client(1), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (inode == 0) co_await sleep_for(Microseconds(20));
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    const fs::InodeNumber file{inode.load()};
    EXPECT_TRUE((co_await session->hold(file)).has_value());
    while (!ended && !testing::Test::HasFailure()) {
      const std::string text = co_await text_of(*session, file, 0, kSize);
      EXPECT_EQ(text.size(), kSize);
      EXPECT_TRUE(text == std::string(kSize, text[0])) << "torn";
      EXPECT_NE(text[0], '!');
      reads = Counts(*session).reads;
    }
  });
  platform->run();
}

TEST_P(NovadReads, AreNeverTornNorOfAnotherFile) {
  expect_whole_reads(perdura::test::make_platform(GetParam(), nodes_for(kNovad, 2)), false);
}

TEST_P(NovadReads, AreNeverTornWhereAWriteGetsSeveralExtents) {
  expect_whole_reads(perdura::test::make_platform(GetParam(), nodes_for(kNovad, 2)), true);
}

TEST_P(NovadReads, AreNeverTornWhereALocalProgramWrites) {
  for (const bool is_fragmented : {false, true}) {
    expect_whole_reads(perdura::test::make_platform(GetParam(), nodes_for(kNovad, 2)),
                       is_fragmented, true);
  }
}

// A READ arrives between nearly any two changes there.
TEST(NovadReadsOnAModel, AreNeverTornWhereChangesTakeLong) {
  const sim::Profile profile = sim::load_profile(perdura::test::profile_path("optane-connectx3"));
  for (const bool is_fragmented : {false, true}) {
    for (const bool is_local : {false, true}) {
      expect_whole_reads(std::make_unique<sim::SimPlatform>(profile, nodes_for(kNovad, 2)),
                         is_fragmented, is_local);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, NovadReads, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::novad::test
