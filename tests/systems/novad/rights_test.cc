// The server decides when a client opens a file whether it may read or write it, by user, groups and
// access list, as on one node. A later change of these changes nothing for whoever has it open.
#include <functional>

#include "services/fs/posix/access_list.h"
#include "systems/novad/session.h"
#include "tests/systems/novad/intruder.h"

namespace perdura::systems::novad::test {
namespace {

using fs::AccessList;
using fs::Credentials;
using fs::kMayRead;
using fs::kMayWrite;

const Credentials kOwner{.uid = 100, .gid = 200};
const Credentials kMember{.uid = 101, .gid = 1, .groups = {7, 200}};
const Credentials kStranger{.uid = 102, .gid = 202};

class NovadRights : public testing::TestWithParam<std::string> {
 protected:
  // `session` is that of the superuser.
  using Body = std::function<Task<>(Session& session, Intruder& one, Intruder& other)>;

  void run(const Body& body, const char* writes = "in-place") {
    const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 1));
    Home home(kNovad,
              {.size = 4 * MiB, .threads = 2, .parameters = {{"writes", std::string(writes)}}});
    home.start(*platform);
    platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await home.make(thread, {});
      const auto files = co_await home.mount(thread);
      const auto session = files->attach(thread);
      Intruder one(thread);
      Intruder other(thread);
      EXPECT_TRUE(co_await one.connect());
      EXPECT_TRUE(co_await other.connect());
      co_await body(dynamic_cast<Session&>(*session), one, other);
      EXPECT_EQ(co_await home.audit(), "");
    });
    platform->run();
  }

  // A file of the owner that nobody holds.
  static Task<fs::InodeNumber> make(fs::Session& session, std::uint32_t permissions) {
    const auto made = co_await session.create(
        fs::kRootInode, "a", {.mode = S_IFREG | permissions, .uid = 100, .gid = 200}, {});
    EXPECT_TRUE(made.has_value());
    if (!made) co_return fs::InodeNumber{};
    EXPECT_TRUE((co_await session.write(made->inode, 0, filled(5000, 'a'), {})).has_value());
    co_return made->inode;
  }
};

// By the class of the mode that the user is in, and by nothing else.
TEST_P(NovadRights, AreThoseOfTheMode) {
  run([](Session& session, Intruder& one, Intruder&) -> Task<> {
    const fs::InodeNumber file = co_await make(session, 0640);
    const auto expect_open = [&](Credentials who, std::uint32_t wanted, bool may) -> Task<> {
      const auto opened = co_await session.open(file, who, wanted);
      EXPECT_EQ(opened.has_value(), may) << who.uid << " for " << wanted;
      EXPECT_TRUE(may || opened == tl::unexpected(std::errc::permission_denied));
      const FileState state = co_await one.open(file, who, wanted);
      EXPECT_EQ(state.filekey != 0, may && (wanted & kMayRead) != 0) << who.uid;
      EXPECT_EQ(state.is_writable != 0, may && wanted == kMayReadAndWrite) << who.uid;
      if (may) co_await session.release(file, 1);
      if (may) co_await one.release(file);
    };
    for (const std::uint32_t wanted : {kMayRead, kMayWrite, kMayReadAndWrite}) {
      co_await expect_open(kOwner, wanted, true);
      co_await expect_open(kMember, wanted, wanted == kMayRead);
      co_await expect_open(kStranger, wanted, false);
      co_await expect_open({}, wanted, true);
    }
  });
}

TEST_P(NovadRights, AreThoseOfTheAccessList) {
  run([](Session& session, Intruder& one, Intruder& other) -> Task<> {
    const fs::InodeNumber file = co_await make(session, 0660);
    using Tag = AccessList::Tag;
    const AccessList list{{{Tag::owner, 6, 0},
                           {Tag::user, 4, kStranger.uid},
                           {Tag::owning_group, 6, 0},
                           {Tag::mask, 4, 0},
                           {Tag::other, 0, 0}}};
    EXPECT_TRUE((co_await session.set_extended(file, fs::kAccessList, list.format(),
                                               fs::AttributeMode::create, {}))
                    .has_value());
    EXPECT_NE((co_await one.open(file, kStranger, kMayRead)).filekey, 0U);
    EXPECT_EQ((co_await other.open(file, kStranger, kMayReadAndWrite)).filekey, 0U);
    EXPECT_EQ((co_await other.open(file, kMember, kMayReadAndWrite)).filekey, 0U) << "the mask";
    EXPECT_EQ((co_await other.open(file, {.uid = 103}, kMayRead)).filekey, 0U);
    EXPECT_NE((co_await other.open(file, kMember, kMayRead)).filekey, 0U);
  });
}

// One has opened it for reading, the other for both.
TEST_P(NovadRights, BelongToTheFilekey) {
  run([](Session& session, Intruder& one, Intruder& other) -> Task<> {
    const fs::InodeNumber file = co_await make(session, 0640);
    const FileState writer = co_await other.open(file, kOwner, kMayReadAndWrite);
    const FileState reader = co_await one.open(file, kMember, kMayRead);
    EXPECT_NE(reader.filekey, writer.filekey);
    EXPECT_FALSE(co_await one.can_write(reader.filekey));
    EXPECT_TRUE(co_await one.can_read(reader.filekey, 0, 5000));
    EXPECT_EQ(co_await text_of(session, file, 0, 3), "aaa");
    EXPECT_TRUE(co_await other.can_write(writer.filekey));
    EXPECT_TRUE(co_await other.can_read(writer.filekey, 0, 5000));
    EXPECT_EQ(co_await text_of(session, file, 0, 3), "xxx");
    // Both follow the file.
    EXPECT_TRUE((co_await session.append(file, filled(1000, 'b'), {})).has_value());
    EXPECT_TRUE(co_await one.can_read(reader.filekey, 0, 6000));
    EXPECT_TRUE(co_await other.can_read(writer.filekey, 0, 6000));
    EXPECT_TRUE((co_await session.truncate(file, 100, {})).has_value());
    EXPECT_FALSE(co_await one.can_read(reader.filekey, 100, 1));
    EXPECT_FALSE(co_await other.can_read(writer.filekey, 100, 1));
    // The mount of the reader gets the right, too, when it opens the file so.
    const FileState both = co_await one.open(file, kOwner, kMayReadAndWrite);
    EXPECT_EQ(both.filekey, writer.filekey);
    EXPECT_TRUE(co_await one.can_write(both.filekey));
  });
}

TEST_P(NovadRights, ToWriteAreGivenToNobodyUnlessFilesAreWrittenInPlace) {
  run(
      [](Session& session, Intruder& one, Intruder& other) -> Task<> {
        const fs::InodeNumber file = co_await make(session, 0600);
        const FileState state = co_await one.open(file, kOwner, kMayReadAndWrite);
        EXPECT_NE(state.filekey, 0U);
        EXPECT_EQ(state.is_writable, 0U);
        EXPECT_FALSE(co_await one.can_write(state.filekey));
        EXPECT_EQ((co_await other.open(file, {}, kMayRead)).filekey, state.filekey);
      },
      "atomic");
}

TEST_P(NovadRights, StayWhatTheyWereWhenTheFileWasOpened) {
  run([](Session& session, Intruder& one, Intruder& other) -> Task<> {
    const fs::InodeNumber file = co_await make(session, 0600);
    const FileState state = co_await one.open(file, kOwner, kMayReadAndWrite);
    EXPECT_TRUE((co_await session.change(file, {.permissions = 0})).has_value());
    EXPECT_TRUE((co_await session.change(file, {.uid = 5, .gid = 5})).has_value());
    EXPECT_TRUE(co_await one.can_read(state.filekey, 0, 5000));
    EXPECT_TRUE(co_await one.can_write(state.filekey));
    EXPECT_EQ((co_await other.open(file, kOwner, kMayRead)).filekey, 0U) << "but not a new open";
    EXPECT_TRUE((co_await session.unlink(fs::kRootInode, "a", {})).has_value());
    EXPECT_TRUE(co_await one.can_write(state.filekey));
    EXPECT_TRUE(co_await one.can_read(state.filekey, 0, 5000));
    co_await one.release(file);
    EXPECT_FALSE(co_await one.can_read(state.filekey, 0, 1));
    EXPECT_FALSE(co_await one.can_write(state.filekey));
  });
}

// A file that a client may not open is not held for it.
TEST_P(NovadRights, ThatAreRefusedHoldNothing) {
  run([](Session& session, Intruder& one, Intruder&) -> Task<> {
    const fs::InodeNumber file = co_await make(session, 0600);
    EXPECT_EQ((co_await one.open(file, kStranger, kMayRead)).filekey, 0U);
    EXPECT_EQ((co_await session.open(file, kStranger, kMayRead)),
              tl::unexpected(std::errc::permission_denied));
    const auto before = co_await session.statistics();
    EXPECT_TRUE((co_await session.unlink(fs::kRootInode, "a", {})).has_value());
    const auto after = co_await session.statistics();
    EXPECT_EQ(after->free_inodes, before->free_inodes + 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Platforms, NovadRights, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::novad::test
