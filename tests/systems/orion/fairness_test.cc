// Sessions that change the same inode: each operation ends after a bounded number of refusals, whatever
// the others do (systems/orion/mds/reservations.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platform/sim/sim_platform.h"
#include "systems/orion/mds/reservations.h"
#include "systems/orion/orion.h"
#include "systems/orion/protocol/counted.h"
#include "systems/orion/protocol/messages.h"
#include "tests/services/fs/home.h"
#include "tests/support/platforms.h"

namespace perdura::systems::orion::test {
namespace {

using fs::InodeNumber;
using fs::kRootInode;
using fs::test::Home;

constexpr int kOthers = 3;
constexpr int kOperations = 12;
// The one that changes the file back to back stops at last, so that a test ends that fails.
constexpr int kMostChanges = 4000;
// Collection of garbage in a log moves its end, too, and follows the change that has caused it.
constexpr double kMostRepetitions = kMostRefusals + 3;

using Operation = std::function<Task<bool>(fs::Session&, InodeNumber, int)>;

const std::vector<std::byte> kPart(1000, std::byte{7});
std::vector<std::byte> pages() { return std::vector<std::byte>(3 * kPage, std::byte{8}); }

Task<bool> set_permissions(fs::Session& session, InodeNumber file, int i) {
  const auto done = co_await session.change(file, {.permissions = 0600 + i % 64});
  co_return done.has_value();
}
Task<bool> set_attribute(fs::Session& session, InodeNumber file, int i) {
  const std::byte value{static_cast<unsigned char>(i)};
  const auto done = co_await session.set_extended(file, "user.count", std::span(&value, 1),
                                                  fs::AttributeMode::create_or_replace, {});
  co_return done.has_value();
}
// Neither names the file, but each changes its number of links.
Task<bool> link_and_unlink(fs::Session& session, InodeNumber file, int) {
  const auto linked = co_await session.link(file, kRootInode, "another", {});
  const auto removed = co_await session.unlink(kRootInode, "another", {});
  co_return linked.has_value() && removed.has_value();
}
Task<bool> rename(fs::Session& session, InodeNumber, int i) {
  const std::string names[] = {"file", "renamed"};
  const auto done =
      co_await session.rename(kRootInode, names[i % 2], kRootInode, names[(i + 1) % 2], {}, {});
  co_return done.has_value();
}
Task<bool> write_part(fs::Session& session, InodeNumber file, int i) {
  const auto done = co_await session.write(file, 100 + i % 3 * kPage, kPart, {});
  co_return done.has_value();
}
Task<bool> write_pages_whole(fs::Session& session, InodeNumber file, int) {
  const auto done = co_await session.write(file, 0, pages(), {});
  co_return done.has_value();
}
Task<bool> append(fs::Session& session, InodeNumber file, int) {
  const auto done = co_await session.append(file, kPart, {});
  co_return done.has_value();
}
Task<bool> truncate(fs::Session& session, InodeNumber file, int i) {
  const auto done = co_await session.truncate(file, 500 + i % 2 * 8000, {});
  co_return done.has_value();
}
Task<bool> punch(fs::Session& session, InodeNumber file, int) {
  const auto done = co_await session.allocate(file, fs::AllocationMode::punch, 50, 5000, {});
  co_return done.has_value();
}

double repetitions_of(const fs::Session& session) {
  return session.metrics()[static_cast<std::size_t>(Measured::repetitions)];
}

struct Outcome {
  double most = 0;   // repetitions of one operation
  int changes = 0;   // by the one that changes the file back to back
  double total = 0;  // repetitions of the others
};

// One session executes `busy` back to back, while others execute `operation`.
Outcome compete(const Operation& busy, const Operation& operation, bool is_shared,
                fs::FsConfig config = {}) {
  config.size = 8 * MiB;
  config.threads = 2 + kOthers;
  Home home(kOrion, config);
  sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(kOrion, 1));
  home.start(platform);
  std::shared_ptr<fs::FileSystem> files;
  InodeNumber file{};
  int under_way = kOthers;
  Outcome outcome;
  const auto execute = [&](fs::Session& session, const Operation& one, int i) -> Task<double> {
    const double before = repetitions_of(session);
    const bool done = co_await one(session, file, i);
    EXPECT_TRUE(done);
    const double repeated = repetitions_of(session) - before;
    outcome.most = std::max(outcome.most, repeated);
    co_return repeated;
  };
  platform.start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    const auto made = co_await session->create(kRootInode, "file", {.mode = S_IFREG | 0644}, {});
    co_await session->write(made->inode, 0, pages(), {});
    if (is_shared) {
      co_await session->set_extended(made->inode, kSharedAttribute, {}, fs::AttributeMode::create,
                                     {});
    }
    file = made->inode;
    while (under_way > 0 && outcome.changes < kMostChanges) {
      co_await execute(*session, busy, outcome.changes++);
    }
  });
  for (int other = 0; other < kOthers; ++other) {
    platform.start(home.client(0), static_cast<fabric::Port>(1 + other), CompletionMode::polling,
                   [&](Thread& thread) -> Task<> {
                     while (file == InodeNumber{}) co_await sleep_for(Microseconds(10));
                     const auto session = files->attach(thread);
                     for (int i = 0; i < kOperations; ++i) {
                       outcome.total += co_await execute(*session, operation, i);
                     }
                     --under_way;
                   });
  }
  platform.run();
  return outcome;
}

const Operation kBusy[] = {set_permissions, set_attribute, link_and_unlink, rename, append};
const Operation kOfOthers[] = {write_part, write_pages_whole, append, truncate,
                               punch,      set_permissions};

TEST(OrionFairness, EachOperationEndsAfterABoundedNumberOfRefusals) {
  for (const bool is_shared : {false, true}) {
    double refused = 0;
    for (const Operation& busy : kBusy) {
      for (const Operation& operation : kOfOthers) {
        const Outcome outcome = compete(busy, operation, is_shared);
        EXPECT_LE(outcome.most, kMostRepetitions)
            << "busy " << &busy - kBusy << ", others " << &operation - kOfOthers;
        EXPECT_LT(outcome.changes, kMostChanges);
        refused += outcome.total;
      }
    }
    EXPECT_GT(refused, 100);
  }
}

// The sessions and inodes of the tests of Reservations.
constexpr SessionNumber kHolder = 1;
constexpr SessionNumber kSecond = 2;
constexpr std::array<std::uint64_t, 1> kFile{5};
constexpr std::array<std::uint64_t, 2> kFileAndDirectory{5, 6};
constexpr std::array<std::uint64_t, 1> kDirectory{6};
constexpr std::array<std::uint64_t, 1> kUnrelated{7};
constexpr Time kBegin{};
constexpr Time kLate = kBegin + Microseconds(10);

TEST(OrionReservations, HaveTheirTurnsInTheOrderOfArrival) {
  Reservations reservations;
  EXPECT_TRUE(reservations.are_none());
  const auto first = reservations.enter(kFile);
  const auto both = reservations.enter(kFileAndDirectory);
  const auto last = reservations.enter(kDirectory);
  const auto unrelated = reservations.enter(kUnrelated);
  EXPECT_TRUE(reservations.is_turn(first, kBegin));
  EXPECT_TRUE(reservations.is_turn(unrelated, kBegin));
  // It would overtake one that waits for the file.
  EXPECT_FALSE(reservations.is_turn(last, kBegin));
  EXPECT_FALSE(reservations.is_turn(both, kBegin));
  reservations.leave(first);
  EXPECT_TRUE(reservations.is_turn(both, kBegin));
  EXPECT_FALSE(reservations.is_turn(last, kBegin));
  reservations.leave(both);
  EXPECT_TRUE(reservations.is_turn(last, kBegin));
  EXPECT_FALSE(reservations.is_free(kDirectory.front()));
  EXPECT_TRUE(reservations.is_free(kFile.front()));
}

TEST(OrionReservations, EndWithTheirTimeAndTheirSession) {
  Reservations reservations;
  const auto holder = reservations.enter(kFile);
  const auto next = reservations.enter(kFile);
  reservations.reserve(holder, kHolder, kLate);
  EXPECT_FALSE(reservations.is_turn(next, kLate - Picoseconds(1)));
  EXPECT_EQ(reservations.take_up(kSecond, kFile.front(), kBegin), 0U);
  EXPECT_TRUE(reservations.is_turn(next, kLate));
  EXPECT_EQ(reservations.take_up(kHolder, kFile.front(), kLate), 0U);
  reservations.reserve(next, kSecond, kLate + kLate.time_since_epoch());
  const auto waits = reservations.enter(kFile);
  reservations.end_session(kHolder);
  EXPECT_FALSE(reservations.is_turn(waits, kLate));
  reservations.end_session(kSecond);
  EXPECT_TRUE(reservations.is_turn(waits, kLate));
  reservations.leave(waits);
  EXPECT_TRUE(reservations.are_none());
}

// A change that has begun may take longer than its reservation lasts.
TEST(OrionReservations, LastUntilTheChangeForWhichTheyWereMadeIsOver) {
  Reservations reservations;
  const auto holder = reservations.enter(kFile);
  reservations.reserve(holder, kHolder, kLate);
  const auto next = reservations.enter(kFile);
  EXPECT_EQ(reservations.take_up(kHolder, kFile.front(), kBegin), holder);
  EXPECT_FALSE(reservations.is_turn(next, kLate));
  reservations.leave(holder);
  EXPECT_TRUE(reservations.is_turn(next, kLate));
}

}  // namespace
}  // namespace perdura::systems::orion::test
