// Images with wrong bytes: inspection names what is wrong, mounting refuses it or gives what is
// whole, and nothing crashes or hangs.
#include <fmt/format.h>

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

std::string text_of(const std::vector<fs::Damage>& damage) {
  std::string text;
  for (const fs::Damage& each : damage) {
    text += each.where + ": " + each.what + (each.repaired ? " (repaired)\n" : "\n");
  }
  return text;
}

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
      }
      co_await operations.mount_again(true);
    }
    const auto region = thread.node.open_region("home");
    const Geometry geometry = *stored_geometry(*region, 0);
    std::vector<std::byte> image(region->size());
    region->read(0, image);
    for (int round = 0; round < 1500; ++round) {
      region->write(0, image);
      // As unmounted, or as after a failure.
      if (random() % 2 == 0) region->store(kCleanOffset, 0);
      for (std::uint64_t i = 0, count = 1 + random() % 3; i < count; ++i) {
        const Bytes place = any_place(random, geometry) / kWord * kWord;
        const std::uint64_t flip = random() % 4 == 0 ? random() : std::uint64_t{1} << random() % 64;
        region->store(place, region->load(place) ^ flip);
      }
      std::vector<fs::Damage> damage = inspect(*region, false);
      if (!damage.empty()) ++named;
      if (random() % 2 == 0) {
        // What is repaired is not found again; what is not stays as it was.
        const std::vector<fs::Damage> repaired = inspect(*region, true);
        EXPECT_GE(repaired.size(), damage.size());
        const auto left = std::count_if(repaired.begin(), repaired.end(),
                                        [](const fs::Damage& each) { return !each.repaired; });
        damage = inspect(*region, false);
        EXPECT_EQ(static_cast<std::ptrdiff_t>(damage.size()), left) << text_of(repaired) << "then\n"
                                                                    << text_of(damage);
      }
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
      }
    }
  });
  platform->run();
  // Most places of a small tree hold nothing, so damage there is harmless.
  EXPECT_GT(named, 0U);
  EXPECT_GT(refused, 0U);
}

TEST(NovaDamage, AnInodeThatCannotBeIsNotDumped) {
  run("shm", config(), [](Thread& thread) -> Task<> {
    const auto region = thread.node.open_region("home");
    const std::uint64_t last = stored_geometry(*region, 0)->inodes;
    EXPECT_TRUE(dump(*region, fs::InodeNumber{1}).starts_with("inode 1, "));
    EXPECT_EQ(dump(*region, fs::InodeNumber{last}), fmt::format("inode {} does not exist\n", last));
    for (const std::uint64_t number : {std::uint64_t{0}, last + 1}) {
      EXPECT_THROW(dump(*region, fs::InodeNumber{number}), UsageError);
    }
    co_return;
  });
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

// Flips bits of what the inode was made with.
void damage_inode(pmem::Region& region, std::uint64_t number) {
  const Bytes place = stored_geometry(region, 0)->inode_offset(number) + kCacheLine;
  region.store(place, ~region.load(place));
}

TEST(NovaDamage, OfTheRootIsNotMounted) {
  run("shm", config(), [](Thread& thread) -> Task<> {
    co_await (co_await kNova.mount(thread, "home", config()))->unmount();
    damage_inode(*thread.node.open_region("home"), 1);
    std::string refused;
    try {
      co_await kNova.mount(thread, "home", config());
    } catch (const UsageError& error) {
      refused = error.what();
    }
    EXPECT_EQ(refused,
              "'home' is damaged: its root directory, what it was made with has a wrong checksum; "
              "perdura fs check --repair mends it");
  });
}

// After a failure as after a clean unmount, a file that is damaged costs itself alone, and can be
// removed, moved and replaced.
TEST(NovaDamage, OfOneFileLeavesTheOthersToBeReadAndWritten) {
  for (const bool unmounts : {false, true}) {
    run("shm", config(), [&](Thread& thread) -> Task<> {
      const std::vector<std::byte> data = bytes(5000);
      const fs::NewInode file{.mode = S_IFREG | 0644};
      const std::array<std::string, 4> names{"removed", "replaced", "moved", "stays"};
      std::vector<std::uint64_t> bad;
      {
        const auto files = co_await kNova.mount(thread, "home", config());
        const auto session = files->attach(thread);
        const auto good = co_await session->create(kRootInode, "good", file, {});
        co_await session->write(good->inode, 0, data, {});
        co_await session->create(kRootInode, "directory", {.mode = S_IFDIR | 0755}, {});
        for (const std::string& name : names) {
          const auto made = co_await session->create(kRootInode, name, file, {});
          co_await session->write(made->inode, 0, data, {});
          bad.push_back(static_cast<std::uint64_t>(made->inode));
        }
        if (unmounts) co_await files->unmount();
      }
      for (const std::uint64_t number : bad) damage_inode(*thread.node.open_region("home"), number);
      {
        const auto files = co_await kNova.mount(thread, "home", config());
        EXPECT_EQ(files->damage().empty(), unmounts) << files->damage();
        const auto session = files->attach(thread);
        for (const std::string& name : names) {
          const auto found = co_await session->look_up(kRootInode, name);
          EXPECT_TRUE(found && found->damaged && found->is_regular()) << name;
          if (!found) co_return;
          const auto attributes = co_await session->attributes(found->inode);
          EXPECT_EQ(attributes.error(), std::errc::io_error);
          // As the kernel does, which holds what it knows.
          EXPECT_TRUE((co_await session->hold(found->inode)).has_value());
        }
        const auto directory = co_await session->look_up(kRootInode, "directory");
        const auto removed = co_await session->look_up(kRootInode, "removed");
        EXPECT_TRUE((co_await session->unlink(kRootInode, "removed", {})).has_value());
        co_await session->release(removed->inode, 1);
        EXPECT_TRUE((co_await session->rename(kRootInode, "good", kRootInode, "replaced",
                                              fs::RenameMode::replace, {}))
                        .has_value());
        EXPECT_TRUE((co_await session->rename(kRootInode, "moved", directory->inode, "moved",
                                              fs::RenameMode::replace, {}))
                        .has_value());
        const auto again = co_await session->create(kRootInode, "removed", file, {});
        EXPECT_TRUE(again.has_value());
        co_await session->write(again->inode, 0, data, {});
        co_await files->unmount();
      }
      const auto region = thread.node.open_region("home");
      // Two are left, of which the record cannot be read and all data can.
      EXPECT_EQ(inspect(*region, false).size(), 2U) << text_of(inspect(*region, false));
      const std::vector<fs::Damage> repaired = inspect(*region, true);
      EXPECT_TRUE(std::all_of(repaired.begin(), repaired.end(), [](const fs::Damage& each) {
        return each.repaired;
      })) << text_of(repaired);
      const auto files = co_await kNova.mount(thread, "home", config());
      EXPECT_EQ(co_await files->audit(), "");
      EXPECT_EQ(files->damage(), "");
      const auto session = files->attach(thread);
      const fs::Tree tree = co_await fs::read_tree(*session, {});
      int in_lost_and_found = 0;
      for (const auto& [path, number] : tree.names) {
        if (!path.starts_with("/lost+found/")) continue;
        ++in_lost_and_found;
        EXPECT_EQ(tree.files[number].data, tree.at("/replaced").data) << path;
      }
      EXPECT_EQ(in_lost_and_found, 2);
      EXPECT_TRUE(tree.names.contains("/removed") && !tree.names.contains("/stays") &&
                  !tree.names.contains("/directory/moved"));
    });
  }
}

// It is a directory in a directory, whose name says that it is a file: the record is whole, so the
// name is set right.
TEST(NovaDamage, OfAFileThatHasBecomeADirectoryIsRepaired) {
  run("shm", config(), [](Thread& thread) -> Task<> {
    std::uint64_t file = 0;
    {
      const auto files = co_await kNova.mount(thread, "home", config());
      const auto session = files->attach(thread);
      const auto made = co_await session->create(kRootInode, "file", {.mode = S_IFREG | 0644}, {});
      file = static_cast<std::uint64_t>(made->inode);
    }
    const auto region = thread.node.open_region("home");
    const Bytes place = stored_geometry(*region, 0)->inode_offset(file);
    InodeRecord record;
    region->read(place, std::as_writable_bytes(std::span(&record, 1)));
    record.base.mode = S_IFDIR | 0755;
    record.base.crc = checksum(record.base);
    record.parent = static_cast<std::uint64_t>(kRootInode);
    region->write(place, std::as_bytes(std::span(&record, 1)));
    const std::string text = text_of(inspect(*region, true));
    EXPECT_NE(text.find("It has another type than inode"), std::string::npos) << text;
    EXPECT_EQ(text_of(inspect(*region, false)), "");
    const auto files = co_await kNova.mount(thread, "home", config());
    EXPECT_EQ(co_await files->audit(), "");
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

// Entries that never got to the logs, of which the rest is whole. The logs end at each place of
// their last page, so that some repairs need another one. In a half of the rounds an inode is
// damaged besides.
TEST(NovaDamage, OfNamesAndLinkCountsIsRepairedByWhatTheOthersSay) {
  for (int round = 0; round < 16; ++round) {
    const bool is_more_damaged = round >= 8;
    run("shm", config(), [&](Thread& thread) -> Task<> {
      const fs::NewInode file{.mode = S_IFREG | 0644};
      const std::vector<std::byte> data = bytes(5000);
      std::array<std::uint64_t, 5> numbers{};
      {
        const auto files = co_await kNova.mount(thread, "home", config());
        const auto session = files->attach(thread);
        const auto directory =
            co_await session->create(fs::kRootInode, "in", {.mode = S_IFDIR | 0755}, {});
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const std::string name(1, static_cast<char>('a' + i));
          const auto made =
              co_await session->create(i == 2 ? directory->inode : fs::kRootInode, name, file, {});
          numbers[i] = static_cast<std::uint64_t>(made->inode);
          co_await session->write(made->inode, 0, data, {});
        }
        const fs::AttributeChange change{.permissions = 0600};
        for (int i = 0; i < round % 8; ++i) {
          for (const std::uint64_t number : {numbers[0], numbers[2], std::uint64_t{1}}) {
            co_await session->change(fs::InodeNumber{number}, change);
          }
        }
        co_await session->link(fs::InodeNumber{numbers[0]}, fs::kRootInode, "a2", {});
        co_await session->hold(fs::InodeNumber{numbers[2]});
        co_await session->unlink(directory->inode, "c", {});
        numbers[4] = static_cast<std::uint64_t>(directory->inode);
        co_await files->unmount();
      }
      const auto region = thread.node.open_region("home");
      const Geometry geometry = *stored_geometry(*region, 0);
      const auto lose_entry = [&](std::uint64_t inode) {
        const Bytes tail = geometry.inode_offset(inode) + kTailWord;
        region->store(tail, region->load(tail) - 1);
      };
      lose_entry(numbers[0]);  // that it has two names
      const Bytes state = geometry.inode_offset(numbers[1]) + kStateWord;
      region->store(state, region->load(state) & ~std::uint64_t{1});
      // The third one has been freed by the unmount; now it has never lost its name.
      const Bytes third = geometry.inode_offset(numbers[2]) + kStateWord;
      region->store(third, region->load(third) | 1);
      lose_entry(numbers[4]);
      if (is_more_damaged) {
        const Bytes base = geometry.inode_offset(numbers[3]) + kCacheLine;
        region->store(base, ~region->load(base));
      }
      std::vector<std::byte> before(region->size());
      std::vector<std::byte> after(region->size());
      region->read(0, before);
      const std::string repaired = " (repaired)";
      const std::string all = text_of(inspect(*region, false));
      region->read(0, after);
      EXPECT_TRUE(before == after) << "nobody asked for repairs";
      EXPECT_EQ(all.find("(repaired)"), std::string::npos);
      const std::string text = text_of(inspect(*region, true));
      for (const std::string& expected :
           {fmt::format("inode {}: It has 2 names, but says 1.", numbers[0]),
            fmt::format("directory 1, name b: It names inode {}, which does not exist.",
                        numbers[1]),
            fmt::format("inode {}: It has 1 names, but says 0.", numbers[2])}) {
        EXPECT_NE(all.find(expected), std::string::npos) << all;
        EXPECT_NE(text.find(expected + repaired + "\n"), std::string::npos) << text;
      }
      EXPECT_EQ(text_of(inspect(*region, false)), "");
      const auto files = co_await kNova.mount(thread, "home", config());
      EXPECT_EQ(co_await files->audit(), "");
      const auto session = files->attach(thread);
      const auto found = co_await session->look_up(fs::InodeNumber{numbers[4]}, "c");
      EXPECT_TRUE(found.has_value());
      EXPECT_EQ(found->links, 1U);
      std::vector<std::byte> into(5000);
      co_await session->read(found->inode, 0, into);
      EXPECT_TRUE(into == data);
      const auto linked = co_await session->look_up(fs::kRootInode, "a2");
      EXPECT_EQ(linked->links, 2U);
      const auto gone = co_await session->look_up(fs::kRootInode, "b");
      EXPECT_EQ(gone.error(), std::errc::no_such_file_or_directory);
    });
  }
}

}  // namespace
}  // namespace perdura::systems::nova::test
