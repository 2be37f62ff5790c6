// Clients whose MDS fails and comes back, or whose connections break: later operations work, the one
// under way ends with not_connected, and what was held is held again, or gone.
#include <gtest/gtest.h>

#include <optional>

#include "platform/runtime/work.h"
#include "systems/orion/client/holds.h"
#include "tests/systems/orion/group.h"

namespace perdura::systems::orion::test {
namespace {

Task<> expect_value(fs::Session& session, InodeNumber file, int page, int value) {
  std::vector<std::byte> found(kPage);
  const auto read = co_await session.read(file, static_cast<Bytes>(page) * kPage, found);
  EXPECT_TRUE(read.has_value()) << std::make_error_code(read.error()).message();
  EXPECT_EQ(found, page_of_value(value)) << "page " << page;
}

TEST(OrionReconnection, ASessionGoesOnWhenTheMdsIsBack) {
  Group group;
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 10, 1);
    for (int i = 0; i < 3; ++i) {
      co_await group.power_fails(kMds);
      co_await group.comes_back(kMds);
      co_await expect_value(session, file, 9, 10);
      co_await write_pages(session, file, i, 3, 50 + i);
      co_await expect_pages(group, thread, file, i, 3, 50 + i);
    }
  });
}

TEST(OrionReconnection, ASessionGoesOnWhenItsConnectionsBreak) {
  Group group;
  group.run_with_file([&](Thread&, fs::Session& session, InodeNumber file) -> Task<> {
    for (int i = 0; i < 10; ++i) {
      co_await write_pages(session, file, i, 3, 20 + i);
      co_await group.link_breaks();
      co_await expect_value(session, file, i, 20 + i);
    }
    // The pages of sessions that have ended are not lost.
    const auto before = co_await session.statistics();
    co_await group.link_breaks();
    const auto after = co_await session.statistics();
    EXPECT_TRUE(before && after && before->free == after->free);
  });
}

// A write of a part of a page waits for stores, to read the rest. By then the MDS has been started
// again, and the new page for it is another session's.
TEST(OrionReconnection, PagesOfASessionThatHasEndedAreNotWrittenTo) {
  constexpr int kMany = 60;  // pages: all that were delegated before
  const std::uint64_t patience = 1'000'000;
  Group group({{"client_patience_us", patience}, {"mds_patience_us", patience}});
  InodeNumber file{};
  bool begins = false;
  bool is_busy = false;
  bool is_done = false;
  const auto write_part = [&](Thread& thread) -> Task<> {
    while (!begins) co_await sleep_for(Microseconds(10));
    const auto files = co_await group.mount(thread);
    const auto session = files->attach(thread);
    const auto be_busy = [](bool& begins_to_be) -> Task<> {
      while (!begins_to_be) co_await sleep_for(Microseconds(10));
      cost_meter->spin_until(Executor::current().now() + Milliseconds(300));
      co_await yield();
    };
    thread.executor.spawn(be_busy(is_busy));
    const auto written = co_await session->write(file, 100, std::vector<std::byte>(8), {});
    EXPECT_TRUE(written.has_value());
    is_done = true;
  };
  const auto take_its_pages = [&](Thread& thread) -> Task<> {
    const auto files = co_await group.mount(thread);
    const auto session = files->attach(thread);
    file = co_await make_file(*session);
    co_await write_pages(*session, file, 0, 1, 1);
    for (const NodeId node : {kOne, kOther}) co_await group.power_fails(node);
    begins = true;
    co_await sleep_for(Milliseconds(10));
    co_await group.power_fails(kMds);
    co_await group.comes_back(kMds);
    co_await sleep_for(Milliseconds(100));  // the other thread has connected again
    is_busy = true;
    co_await sleep_for(Milliseconds(1));
    for (const NodeId node : {kOne, kOther}) co_await group.comes_back(node);
    const auto other = co_await session->create(kRootInode, "other", {.mode = S_IFREG | 0644}, {});
    EXPECT_TRUE(other.has_value());
    if (!other) co_return;
    co_await write_pages(*session, other->inode, 0, kMany, 100);
    EXPECT_FALSE(is_done);
    while (!is_done) co_await sleep_for(Microseconds(100));
    co_await expect_pages(group, thread, other->inode, 0, kMany, 100);
  };
  group.run(take_its_pages, write_part);
}

// Nobody knows whether it has been executed.
TEST(OrionReconnection, TheOperationUnderWayEndsWithAnError) {
  Group group;
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 1, 1);
    bool has_failed = false;
    bool has_ended = false;
    thread.executor.spawn([](fs::Session& of, bool& failed, bool& ended) -> Task<> {
      for (int i = 0; !failed; ++i) {
        const auto made = co_await of.create(kRootInode, std::to_string(i), {.mode = S_IFREG}, {});
        failed = !made.has_value();
        EXPECT_TRUE(!failed || made.error() == std::errc::not_connected);
      }
      ended = true;
    }(session, has_failed, has_ended));
    co_await sleep_for(Microseconds(50));
    co_await group.power_fails(kMds);
    co_await group.comes_back(kMds);
    while (!has_ended) co_await sleep_for(Microseconds(20));
    co_await expect_value(session, file, 0, 1);
    const auto made = co_await session.create(kRootInode, "later", {.mode = S_IFREG | 0644}, {});
    EXPECT_TRUE(made.has_value());
  });
}

TEST(OrionReconnection, ItGivesUpAfterAWhile) {
  Group group;
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await group.power_fails(kMds);
    const Time begun = thread.executor.now();
    const auto found = co_await session.attributes(file);
    EXPECT_TRUE(!found && found.error() == std::errc::not_connected);
    EXPECT_GE(thread.executor.now() - begun, Milliseconds(3));
    EXPECT_LE(thread.executor.now() - begun, Milliseconds(6));
    co_await group.comes_back(kMds);
    const auto later = co_await session.attributes(file);
    EXPECT_TRUE(later.has_value());
  });
}

// Holds are not durable: an inode without names that only this mount held is gone.
TEST(OrionReconnection, HoldsAreKeptOrTheInodeIsGone) {
  Group group;
  group.run_with_file([&](Thread&, fs::Session& session, InodeNumber file) -> Task<> {
    const auto held = co_await session.hold(file);
    EXPECT_TRUE(held.has_value());
    const auto unnamed = co_await session.create_unnamed({.mode = S_IFREG | 0600}, {});
    EXPECT_TRUE(unnamed.has_value());
    if (!unnamed) co_return;
    co_await write_pages(session, file, 0, 2, 1);
    co_await group.power_fails(kMds);
    co_await group.comes_back(kMds);
    co_await expect_value(session, file, 0, 1);
    // Another one gets the number, and the mount tells them apart.
    const auto other = co_await session.create(kRootInode, "other", {.mode = S_IFREG | 0644}, {});
    EXPECT_TRUE(other && other->inode != unnamed->inode);
    EXPECT_EQ(number_of(other->inode), number_of(unnamed->inode));
    const auto named = co_await session.look_up(kRootInode, "other");
    EXPECT_TRUE(named && named->inode == other->inode);
    const auto held_too = co_await session.hold(other->inode);
    EXPECT_TRUE(held_too.has_value());
    co_await write_pages(session, other->inode, 0, 1, 7);
    const auto found = co_await session.attributes(unnamed->inode);
    EXPECT_TRUE(!found && found.error() == std::errc::no_such_file_or_directory);
    const auto mode = co_await session.change(unnamed->inode, {.permissions = 0600});
    EXPECT_TRUE(!mode && mode.error() == std::errc::no_such_file_or_directory);
    const auto linked = co_await session.link(unnamed->inode, kRootInode, "linked", {});
    EXPECT_TRUE(!linked && linked.error() == std::errc::no_such_file_or_directory);
    co_await session.release(unnamed->inode, 1);
    co_await expect_value(session, other->inode, 0, 7);
    const auto again = co_await session.attributes(other->inode);
    EXPECT_TRUE(again && again->inode == other->inode);
    // The hold of the file is one again: it outlives its name.
    const auto removed = co_await session.unlink(kRootInode, "file", {});
    EXPECT_TRUE(removed.has_value());
    co_await expect_value(session, file, 1, 2);
    co_await session.release(file, 1);
    const auto gone = co_await session.attributes(file);
    EXPECT_TRUE(!gone && gone.error() == std::errc::no_such_file_or_directory);
  });
}

// A session is slow to take the answer to a hold. Meanwhile the MDS starts again, and another session of the
// mount connects to it and holds again what the mount holds. The new MDS must know of this hold, too.
TEST(OrionReconnection, AHoldThatTheFormerMdsHasAnsweredIsHeld) {
  int held_late = 0;
  for (int delay = 0; delay < 40; ++delay) {
    SCOPED_TRACE(delay);
    const Picoseconds slow_after = Nanoseconds(500) * delay;
    Group group({{"mds_patience_us", std::uint64_t{100'000}}});
    std::shared_ptr<fs::FileSystem> files;
    InodeNumber file{};
    bool begins = false;
    std::optional<bool> is_held;
    bool is_removed = false;
    const auto hold_slowly = [&](Thread& thread) -> Task<> {
      while (!begins) co_await sleep_for(Microseconds(10));
      const auto session = files->attach(thread);
      EXPECT_TRUE((co_await session->attributes(file)).has_value());
      const auto be_slow = [](Picoseconds after) -> Task<> {
        co_await sleep_for(after);
        cost_meter->spin_until(Executor::current().now() + Milliseconds(10));
        co_await yield();
      };
      thread.executor.spawn(be_slow(slow_after));
      begins = false;
      is_held = (co_await session->hold(file)).has_value();
      while (!is_removed) co_await sleep_for(Microseconds(10));
      const auto found = co_await session->attributes(file);
      EXPECT_EQ(found.has_value(), *is_held);
    };
    const auto restart = [&](Thread& thread) -> Task<> {
      files = co_await group.mount(thread);
      const auto session = files->attach(thread);
      file = co_await make_file(*session);
      begins = true;
      while (begins) co_await sleep_for(Nanoseconds(500));
      co_await sleep_for(slow_after + Microseconds(50));
      co_await group.power_fails(kMds);
      co_await group.comes_back(kMds);
      EXPECT_TRUE((co_await session->attributes(kRootInode)).has_value());
      EXPECT_FALSE(is_held.has_value());
      while (!is_held) co_await sleep_for(Microseconds(10));
      held_late += *is_held ? 1 : 0;
      EXPECT_TRUE((co_await session->unlink(kRootInode, "file", {})).has_value());
      is_removed = true;
      co_await sleep_for(Milliseconds(5));
    };
    group.run(restart, hold_slowly);
  }
  EXPECT_GT(held_late, 0) << "no answer was late";
}

}  // namespace
}  // namespace perdura::systems::orion::test
