// Images with wrong bytes: inspection names what is wrong, mounting refuses it or gives what is
// whole, and nothing crashes or hangs.
#include <random>

#include "platform/base/error.h"
#include "systems/nova/inspect.h"
#include "systems/nova/layout.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/seed.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

using fs::test::RandomOperations;

fs::FsConfig config() { return fs::test::config_of(kNova, true); }

// Somewhere in what is stored, more often where there is much to break.
Bytes any_place(std::mt19937_64& random, const Geometry& geometry) {
  switch (random() % 8) {
    case 0:
      return random() % 512;
    case 1:
      return kJournalOffset + random() % (2 * kJournalBytes);
    case 2:
    case 3:
      return geometry.inode_table + random() % (geometry.inodes * sizeof(InodeRecord));
    case 4:
      return geometry.saved_blocks + random() % 64;
    default:
      return geometry.first_block * kBlock + random() % (64 * kBlock);
  }
}

TEST(NovaDamage, OfRandomBytesIsNamedOrHarmless) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const auto platform = perdura::test::make_platform("shm", 1);
  std::uint64_t named = 0;
  std::uint64_t refused = 0;
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    std::mt19937_64 random(seed);
    {
      RandomOperations operations(thread, kNova, config(), seed);
      co_await operations.begin();
      for (int i = 0; i < 150; ++i) {
        co_await operations.step();
        co_await yield();
      }
      co_await operations.mount_again(true);
    }
    const auto region = thread.node.open_region("home");
    const Geometry geometry = *stored_geometry(*region, 0);
    std::vector<std::byte> image(region->size());
    region->read(0, image);
    for (int round = 0; round < 1500; ++round) {
      co_await yield();
      region->write(0, image);
      // As unmounted, or as after a failure.
      if (random() % 2 == 0) region->store(kCleanOffset, 0);
      for (std::uint64_t i = 0, count = 1 + random() % 3; i < count; ++i) {
        const Bytes place = any_place(random, geometry) / kWord * kWord;
        const std::uint64_t flip = random() % 4 == 0 ? random() : std::uint64_t{1} << random() % 64;
        region->store(place, region->load(place) ^ flip);
      }
      const std::vector<fs::Damage> damage = inspect(*region, false);
      if (!damage.empty()) ++named;
      dump(*region, std::nullopt);
      std::shared_ptr<fs::FileSystem> files;
      try {
        files = co_await kNova.mount(thread, "home", config());
      } catch (const UsageError& error) {
        ++refused;
        EXPECT_FALSE(damage.empty()) << "it was refused: " << error.what();
        continue;
      }
      const std::string audit = co_await files->audit();
      if (damage.empty()) {
        EXPECT_EQ(audit, "") << "nothing was found wrong";
      }
      const auto session = files->attach(thread);
      co_await fs::read_tree(*session, {});
      for (std::uint64_t number = 1; number <= geometry.inodes; ++number) {
        const std::vector<std::byte> data = bytes(5000);
        co_await session->write(fs::InodeNumber{number}, 3000, data, {});
        co_await session->unlink(fs::InodeNumber{number}, "a", {});
        co_await session->create(fs::InodeNumber{number}, "new", {.mode = S_IFREG}, {});
        co_await session->rename(fs::InodeNumber{number}, "b", fs::kRootInode, "e",
                                 fs::RenameMode::replace, {});
        co_await yield();
      }
    }
  });
  platform->run();
  EXPECT_GT(named, 100U);
  EXPECT_GT(refused, 100U);
}

TEST(NovaDamage, OfASuperblockIsRepairedFromTheOther) {
  run("shm", config(), [](Thread& thread) -> Task<> {
    const auto region = thread.node.open_region("home");
    for (const Bytes place : {Bytes{0}, kSuperblockCopy}) {
      region->store(place + 16, 12345);
      std::vector<fs::Damage> damage = inspect(*region, false);
      EXPECT_EQ(damage.size(), 1U);
      EXPECT_EQ(stored_geometry(*region, place), std::nullopt) << "nobody asked for repairs";
      damage = inspect(*region, true);
      EXPECT_TRUE(damage.size() == 1 && damage[0].repaired);
      EXPECT_TRUE(inspect(*region, false).empty());
      co_await kNova.mount(thread, "home", config());
    }
  });
}

TEST(NovaDamage, OfASavedBitmapIsRepairedByMakingItAnew) {
  run("shm", config(), [](Thread& thread) -> Task<> {
    co_await (co_await kNova.mount(thread, "home", config()))->unmount();
    const auto region = thread.node.open_region("home");
    const Geometry geometry = *stored_geometry(*region, 0);
    region->store(geometry.saved_blocks, ~region->load(geometry.saved_blocks));
    const std::vector<fs::Damage> damage = inspect(*region, true);
    EXPECT_TRUE(damage.size() == 1 && damage[0].repaired);
    EXPECT_TRUE(inspect(*region, false).empty());
    const auto files = co_await kNova.mount(thread, "home", config());
    EXPECT_EQ(co_await files->audit(), "");
  });
}

}  // namespace
}  // namespace perdura::systems::nova::test
