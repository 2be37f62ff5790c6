// Filekeys that are guessed, given up, or those of a server's earlier life are refused, and whoever
// uses one harms nobody else.
#include <functional>

#include "tests/systems/novad/intruder.h"
#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {
namespace {

class NovadFilekeys : public testing::TestWithParam<std::string> {
 protected:
  using Body = std::function<Task<>(fs::Session& session, Intruder& intruder)>;

  void run(const Body& body) {
    const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 1));
    Home home(kNovad, {.size = 4 * MiB, .threads = 2});
    home.start(*platform);
    platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await home.make(thread, {});
      const auto files = co_await home.mount(thread);
      const auto session = files->attach(thread);
      Intruder intruder(thread);
      EXPECT_TRUE(co_await intruder.connect());
      co_await body(*session, intruder);
      EXPECT_EQ(co_await home.audit(), "");
    });
    platform->run();
  }
};

TEST_P(NovadFilekeys, ReachTheBytesOfTheFileAndNoOthers) {
  run([](fs::Session& session, Intruder& intruder) -> Task<> {
    const fs::InodeNumber file = co_await open_new(session, "a", filled(5000, 'a'));
    const FileState state = co_await intruder.hold(file);
    EXPECT_NE(state.filekey, 0U);
    EXPECT_EQ(state.size, 5000U);
    EXPECT_EQ(state.is_whole, 1U);
    EXPECT_TRUE(co_await intruder.can_read(state.filekey, 0, 5000));
    EXPECT_TRUE(co_await intruder.can_read(state.filekey, 4999, 1));
    EXPECT_FALSE(co_await intruder.can_read(state.filekey, 4999, 2)) << "beyond the end";
    EXPECT_FALSE(co_await intruder.can_read(state.filekey, 8192, 1));
    EXPECT_TRUE((co_await session.truncate(file, 100, {})).has_value());
    EXPECT_FALSE(co_await intruder.can_read(state.filekey, 100, 1)) << "cut off";
    EXPECT_TRUE((co_await session.truncate(file, 9000, {})).has_value());
    EXPECT_FALSE(co_await intruder.can_read(state.filekey, 4096, 1)) << "a hole";
    EXPECT_TRUE(co_await intruder.can_read(state.filekey, 0, 100));
  });
}

TEST_P(NovadFilekeys, GiveNoRightToWriteUnlessTheFileSystemSaysSo) {
  run([](fs::Session& session, Intruder& intruder) -> Task<> {
    const fs::InodeNumber file = co_await open_new(session, "a", filled(5000, 'a'));
    const FileState state = co_await intruder.hold(file);
    EXPECT_EQ(state.is_writable, 0U);
    EXPECT_FALSE(co_await intruder.can_write(state.filekey));
    EXPECT_EQ(co_await text_of(session, file, 0, 3), "aaa");
  });
}

TEST_P(NovadFilekeys, EndWithTheLastHoldOfTheFile) {
  run([](fs::Session& session, Intruder& intruder) -> Task<> {
    const fs::InodeNumber file = co_await open_new(session, "a", filled(5000, 'a'));
    const FileState state = co_await intruder.hold(file);
    EXPECT_TRUE((co_await session.unlink(fs::kRootInode, "a", {})).has_value());
    EXPECT_TRUE(co_await intruder.can_read(state.filekey, 0, 5000)) << "it is still held";
    co_await session.release(file, 1);
    EXPECT_TRUE(co_await intruder.can_read(state.filekey, 0, 5000)) << "it is still held";
    co_await intruder.release(file);
    EXPECT_FALSE(co_await intruder.can_read(state.filekey, 0, 1));
    // The number and the blocks may be used again, but not by that key.
    const fs::InodeNumber next = co_await open_new(session, "b", filled(5000, 'b'));
    EXPECT_FALSE(co_await intruder.can_read(state.filekey, 0, 1));
    EXPECT_EQ(co_await text_of(session, next, 0, 3), "bbb");
  });
}

TEST_P(NovadFilekeys, ThatAreGuessedAreRefused) {
  run([](fs::Session& session, Intruder& intruder) -> Task<> {
    const fs::InodeNumber file = co_await open_new(session, "a", filled(5000, 'a'));
    const FileState state = co_await intruder.hold(file);
    for (const std::uint32_t off : {1U, 100U, 1U << 20}) {
      EXPECT_FALSE(co_await intruder.can_read(state.filekey + off, 0, 1)) << off;
    }
    // One of another life of the server might be valid by chance.
    EXPECT_FALSE(co_await intruder.can_read(intruder.life() + 1, state.filekey, 0, 1));
    EXPECT_TRUE(co_await intruder.can_read(state.filekey, 0, 1));
  });
}

// Directories have none, and a client that does not hold a file is not told its key.
TEST_P(NovadFilekeys, AreThoseOfOpenRegularFiles) {
  run([](fs::Session& session, Intruder& intruder) -> Task<> {
    const auto made =
        co_await session.create(fs::kRootInode, "d", {.mode = S_IFDIR | 0755}, fs::Timestamp{1});
    EXPECT_TRUE(made.has_value());
    if (!made) co_return;
    const FileState state = co_await intruder.hold(made->inode);
    EXPECT_EQ(state.filekey, 0U);
    const fs::InodeNumber file = co_await open_new(session, "a", filled(10, 'a'));
    EXPECT_EQ((co_await intruder.look_at(file)).filekey, 0U) << "only another mount holds it";
    EXPECT_NE((co_await intruder.hold(file)).filekey, 0U);
    EXPECT_NE((co_await intruder.look_at(file)).filekey, 0U);
  });
}

INSTANTIATE_TEST_SUITE_P(Platforms, NovadFilekeys,
                         testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::novad::test
