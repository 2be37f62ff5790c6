// Volumes that hold the metadata of another system: data elsewhere, entries made by others, and
// blocks that are freed after a delay.
#include <random>

#include "tests/support/seed.h"
#include "tests/systems/nova/volume_support.h"

namespace perdura::systems::nova::test {
namespace {

std::set<std::uint64_t> numbers(std::initializer_list<std::uint64_t> pages_used) {
  std::set<std::uint64_t> all;
  for (const std::uint64_t page : pages_used) all.insert(kFirstPage + page);
  return all;
}

TEST(NovaOwner, KnowsThePagesOfEachFile) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    NoPages owner;
    {
      OpenVolume home = co_await open_home(thread, kHome, &owner);
      const std::uint64_t file = home.create(kRootNumber, "a");
      const std::uint64_t other = home.create(kRootNumber, "b");
      EXPECT_EQ(home.append(file, pages(0, 10, 4, 4 * kBlock)), std::errc{});
      EXPECT_EQ(home.append(other, pages(5, 20, 2, 7 * kBlock)), std::errc{});
      EXPECT_EQ(owner.used, numbers({10, 11, 12, 13, 20, 21}));
      EXPECT_EQ(home.operations->attributes(file)->blocks, 4 * kBlock / 512);
      // A page that is replaced, also by a later entry of the same operation.
      EXPECT_EQ(home.append(file, pages(1, 30, 1, 4 * kBlock), pages(1, 31, 1, 4 * kBlock)),
                std::errc{});
      EXPECT_EQ(owner.used, numbers({10, 12, 13, 20, 21, 31}));
      EXPECT_EQ(home->audit(), "");
      EXPECT_TRUE(home.operations->truncate(file, 3 * kBlock, {}).has_value());
      EXPECT_EQ(owner.used, numbers({10, 12, 20, 21, 31}));
      EXPECT_TRUE(home.operations->truncate(file, 3 * kBlock - 100, {}).has_value());
      EXPECT_TRUE(home.operations->truncate(file, 9 * kBlock, {}).has_value());
      EXPECT_TRUE(home.operations->remove(kRootNumber, "b", false, {}).has_value());
      EXPECT_EQ(owner.used, numbers({10, 12, 31}));
      EXPECT_EQ(home->audit(), "");
    }
    for (const bool unmounts : {false, true}) {
      owner.used.clear();
      OpenVolume home = co_await open_home(thread, kHome, &owner);
      EXPECT_EQ(owner.used, numbers({10, 12, 31})) << "a mount marks them";
      EXPECT_EQ(home->audit(), "");
      if (unmounts) home->save();
    }
    EXPECT_TRUE(inspect(*thread.node.open_region("home"), false, &owner).empty());
    owner.used.clear();
    co_await open_home(thread, kHome, &owner);
    EXPECT_EQ(owner.used, numbers({10, 12, 31})) << "also after a clean unmount";
  });
}

TEST(NovaOwner, IsToldWhichInodesHaveChanged) {
  fs::FsConfig config = kHome;
  config.parameters["cached_inodes"] = std::uint64_t{2};
  config.parameters["gc_pages"] = std::uint64_t{2};
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  run("sim", config, [&](Thread& thread) -> Task<> {
    NoPages owner;
    OpenVolume home = co_await open_home(thread, config, &owner);
    std::vector<InodeRecord> copies(home->geometry().inodes + 1);
    owner.when_changed = [&](std::uint64_t number) {
      copies[number] = home.region->read_object<InodeRecord>(home->geometry().inode_offset(number));
    };
    owner.when_changed(kRootNumber);
    std::mt19937_64 random(seed);
    const std::uint64_t directory = home.create(kRootNumber, "d", S_IFDIR | 0755);
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t in = random() % 2 == 0 ? kRootNumber : directory;
      const std::uint64_t to = random() % 2 == 0 ? kRootNumber : directory;
      const std::string name(1, static_cast<char>('e' + random() % 6));
      const std::string other(1, static_cast<char>('e' + random() % 6));
      switch (random() % 5) {
        case 0:
          home.operations->create(in, name, {.mode = S_IFREG | 0644}, {});
          break;
        case 1:
          home.operations->create(in, name, {.mode = S_IFDIR | 0755}, {});
          break;
        case 2:
          home.operations->remove(in, name, random() % 2 == 0, {});
          break;
        case 3:
          home.operations->rename(in, name, to, other, fs::RenameMode::replace, {});
          break;
        default:
          if (const auto found = home.operations->look_up(in, name)) {
            home.operations->change(number_of(found->inode), {.permissions = 0600});
          }
      }
      for (std::uint64_t number = 1; number <= home->geometry().inodes; ++number) {
        const auto record =
            home.region->read_object<InodeRecord>(home->geometry().inode_offset(number));
        const bool is_same = (record.state & 1) == 0
                                 ? record.state == copies[number].state
                                 : std::ranges::equal(bytes_of(record), bytes_of(copies[number]));
        EXPECT_TRUE(is_same) << "inode " << number << " after operation " << i;
        if (!is_same) co_return;
      }
    }
    EXPECT_GT(home->count_of(Happened::fast_collections), 0U);
    EXPECT_GT(home->count_of(Happened::thorough_collections), 0U);
    EXPECT_EQ(home->audit(), "");
  });
}

// Two files whose logs say that they have the same page: both are unusable, and a repair, which
// cannot copy the page, leaves it to one of them.
TEST(NovaOwner, HasPagesThatTwoFilesClaim) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    NoPages owner;
    std::array<std::uint64_t, 2> files{};
    {
      OpenVolume home = co_await open_home(thread, kHome, &owner);
      files = {home.create(kRootNumber, "a"), home.create(kRootNumber, "b")};
      home.append(files[0], pages(0, 10, 4, 4 * kBlock));
      home.append(files[1], pages(0, 12, 1, kBlock), pages(1, 20, 1, 2 * kBlock));
      EXPECT_NE(home->audit(), "");
    }
    owner.used.clear();
    {
      OpenVolume home = co_await open_home(thread, kHome, &owner);
      EXPECT_NE(home->damage(), "");
      for (const std::uint64_t file : files) {
        EXPECT_EQ(home.operations->attributes(file).error(), std::errc::io_error);
      }
    }
    const auto region = thread.node.open_region("home");
    EXPECT_EQ(inspect(*region, false, &owner).size(), 1U);
    std::string losses;
    for (const fs::Damage& each : inspect(*region, true, &owner)) {
      EXPECT_TRUE(each.repaired) << each.where << ": " << each.what;
      losses += each.what;
    }
    EXPECT_NE(losses.find("reads as zeros"), std::string::npos) << losses;
    EXPECT_TRUE(inspect(*region, false, &owner).empty());
    owner.used.clear();
    OpenVolume home = co_await open_home(thread, kHome, &owner);
    EXPECT_EQ(owner.used, numbers({10, 11, 12, 13, 20}));
    EXPECT_EQ(home->damage(), "");
    EXPECT_EQ(home->audit(), "");
  });
}

// Entries that are lost may have freed a page that an older one names. Nobody can tell whose it is.
TEST(NovaOwner, GetsNoDoubtfulPagesFromARepair) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    NoPages owner;
    std::uint64_t file = 0;
    Bytes lost = 0;
    {
      OpenVolume home = co_await open_home(thread, kHome, &owner);
      file = home.create(kRootNumber, "a");
      home.append(file, pages(0, 10, 2, 2 * kBlock));
      {
        const Locked locked(*home.volume, Locked::For::changing, {file});
        lost = end_of(Volume::tail(*locked[0]));
      }
      home.append(file, pages(1, 20, 1, 2 * kBlock));
      home.append(file, pages(2, 30, 1, 3 * kBlock));
      home->save();
    }
    const auto region = thread.node.open_region("home");
    region->store(lost, ~region->load(lost));
    owner.used.clear();
    {
      OpenVolume home = co_await open_home(thread, kHome, &owner);
      EXPECT_EQ(home.operations->attributes(file).error(), std::errc::io_error);
      EXPECT_EQ(owner.used, numbers({10, 11, 30})) << "what can be read stays, for a repair";
    }
    inspect(*region, true, &owner);
    EXPECT_TRUE(inspect(*region, false, &owner).empty());
    owner.used.clear();
    OpenVolume home = co_await open_home(thread, kHome, &owner);
    EXPECT_EQ(owner.used, numbers({30}));
    EXPECT_EQ(home->audit(), "");
  });
}

TEST(NovaAppend, RefusesImpossibleEntries) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    NoPages owner;
    OpenVolume home = co_await open_home(thread, kHome, &owner);
    const std::uint64_t file = home.create(kRootNumber, "a");
    const std::uint64_t directory = home.create(kRootNumber, "d", S_IFDIR | 0755);
    const Bytes tail = home.region->load(home->geometry().inode_offset(file) + kTailWord);
    const WriteEntry right = pages(0, 10, 1, kBlock);
    const auto refuses = [&](const char* what, const auto& entry, std::uint64_t number) {
      EXPECT_EQ(home.append(number, right, entry), std::errc::invalid_argument) << what;
    };
    WriteEntry in_region = right;
    in_region.block = home->geometry().blocks - 1;
    refuses("a block of the region", in_region, file);
    refuses("a page that is none", pages(0, NoPages::kCount - 1, 2, kBlock), file);
    WriteEntry far = right;
    far.block = kEndOfPages - 1;
    refuses("a number that is too large", far, file);
    refuses("a size that is too large", pages(0, 10, 1, fs::kLargestFile + 1), file);
    refuses("no blocks", pages(0, 10, 0, kBlock), file);
    refuses("a directory", right, directory);
    WriteEntry entry = right;
    entry.header.mode = S_IFDIR | 0755;
    refuses("another type", entry, file);
    entry = right;
    entry.header.lines = 2;
    refuses("two lines", entry, file);
    entry.header.lines = 0;
    refuses("no line", entry, file);
    refuses("an unknown flag", pages(0, 10, 1, kBlock, 4), file);
    refuses("an unknown flag", SizeEntry{made(EntryType::size, kInBlocks), 0}, file);
    refuses("an unknown flag", AttributesEntry{.header = made(EntryType::attributes, 2)}, file);
    refuses("a size that is too large", SizeEntry{made(EntryType::size), fs::kLargestFile + 1},
            file);
    EntryHeader name = made(EntryType::remove);
    name.mode = S_IFREG;
    refuses("a name", RemoveEntry{name, file, 1}, directory);
    refuses("an attribute", ExtendedEntry{.header = made(EntryType::remove_extended)}, file);
    refuses("nothing", EntryHeader{}, file);
    {
      const Locked locked(*home.volume, Locked::For::changing, {file});
      const std::vector<std::byte> half(kCacheLine / 2);
      EXPECT_EQ(home->append(home.context, *locked[0], half, Urgency::grows),
                std::errc::invalid_argument);
      EXPECT_EQ(home->append(home.context, *locked[0], {}, Urgency::grows), std::errc{});
    }
    EXPECT_EQ(home.append(40, right), std::errc::no_such_file_or_directory);
    EXPECT_EQ(home.region->load(home->geometry().inode_offset(file) + kTailWord), tail);
    EXPECT_TRUE(owner.used.empty());
    EXPECT_EQ(home.append(file, right), std::errc{});
    EXPECT_EQ(home->audit(), "");
  });
}

// Clients that extend a file at once, or set its times, do not know what others do meanwhile. What
// they keep must also survive the collection of logs.
TEST(NovaAppend, KeepsTheSizeAndTheLinksIfAskedTo) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  for (std::uint64_t gc_pages : {2, 1000}) {
    fs::FsConfig config = kHome;
    config.parameters["gc_pages"] = gc_pages;
    run("sim", config, [&](Thread& thread) -> Task<> {
      std::mt19937_64 random(seed + gc_pages);
      NoPages owner;
      OpenVolume home = co_await open_home(thread, config, &owner);
      const std::uint64_t file = home.create(kRootNumber, "a");
      Bytes size = 0;
      std::uint32_t links = 1;
      const auto free_page = [&] {
        std::uint64_t page = random() % NoPages::kCount;
        while (owner.is_used(kFirstPage + page)) page = (page + 1) % NoPages::kCount;
        return page;
      };
      for (int i = 0; i < 1500; ++i) {
        const Bytes to = random() % (20 * kBlock);
        switch (random() % 8) {
          case 0: {
            // A client may free the blocks after the new end, or leave them.
            const std::uint8_t flags = random() % 2 == 0 ? kCuts : std::uint8_t{0};
            EXPECT_EQ(home.append(file, SizeEntry{made(EntryType::size, flags), to}), std::errc{});
            size = to;
            break;
          }
          case 1:
            if (links < 5) {
              const std::string name = "l" + std::to_string(links++);
              EXPECT_TRUE(home.operations->link(file, kRootNumber, name, {}).has_value());
            } else {
              for (; links > 1; --links) {
                const std::string name = "l" + std::to_string(links - 1);
                EXPECT_TRUE(home.operations->remove(kRootNumber, name, false, {}).has_value());
              }
            }
            break;
          case 2:
          case 3: {
            const AttributesEntry entry{.header = made(EntryType::attributes, kKeepsLinks),
                                        .links = 77,
                                        .accessed_seconds = i};
            EXPECT_EQ(home.append(file, entry), std::errc{});
            break;
          }
          case 4:
            EXPECT_EQ(home.append(file, pages(random() % 20, free_page(), 1, to)), std::errc{});
            size = to;
            break;
          default: {
            EXPECT_EQ(home.append(file, pages(random() % 20, free_page(), 1, to, kExtends)),
                      std::errc{});
            size = std::max(size, to);
          }
        }
        const auto is = home.operations->attributes(file);
        EXPECT_EQ(is->size, size) << i;
        EXPECT_EQ(is->links, links) << i;
        const std::string problem = home->audit();
        EXPECT_EQ(problem, "") << i;
        if (HasFailure()) co_return;
      }
      EXPECT_GT(home->count_of(Happened::fast_collections), 0U);
      owner.used.clear();
      const OpenVolume again = co_await open_home(thread, config, &owner);
      EXPECT_EQ(again.operations->attributes(file)->size, size);
      EXPECT_EQ(again.operations->attributes(file)->links, links);
    });
  }
}

// The entry that made a file smaller counts as long as there are older ones, even if nothing else is
// left of its page: entries that only extend would else find the former size.
TEST(NovaAppend, KeepsASmallerSize) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    NoPages owner;
    OpenVolume home = co_await open_home(thread, kHome, &owner);
    const std::uint64_t file = home.create(kRootNumber, "a");
    constexpr std::uint64_t kEntriesOfPage = (kSmallestLogPage - kCacheLine) / kCacheLine;
    for (std::uint64_t i = 0; i < kEntriesOfPage; ++i) {
      EXPECT_EQ(home.append(file, pages(i, i, 1, 9 * kBlock, kExtends)), std::errc{});
    }
    for (std::uint64_t i = 0; i < kEntriesOfPage; ++i) {
      EXPECT_EQ(home.append(file, SizeEntry{made(EntryType::size), 10}), std::errc{});
    }
    EXPECT_EQ(home.append(file, pages(0, 100, 1, 20, kExtends)), std::errc{});
    EXPECT_EQ(home.operations->attributes(file)->size, 20U);
    EXPECT_EQ(home->audit(), "");
  });
}

// A remote reader may still be looking at a page of a log, or at data, that was freed.
TEST(NovaDelay, KeepsWhatWasFreed) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    NoPages owner;
    OpenVolume home = co_await open_home(thread, kHome, &owner, Microseconds(100));
    const std::uint64_t file = home.create(kRootNumber, "a");
    EXPECT_FALSE(home->next_free().has_value());
    home.append(file, pages(0, 10, 1, kBlock));
    const auto head = [&] {
      const auto record =
          home.region->read_object<InodeRecord>(home->geometry().inode_offset(file));
      return record.head[version_of(record.tail) & 1] / kBlock;
    };
    const std::uint64_t log_page = head();
    const Time begin = thread.executor.now();
    std::uint64_t written = 0;
    for (; head() == log_page; ++written) {
      EXPECT_EQ(home.append(file, pages(0, 20 + written, 1, kBlock)), std::errc{});
    }
    const auto next = home->next_free();
    EXPECT_TRUE(next.has_value() && *next >= begin + Microseconds(100));
    EXPECT_TRUE(home->blocks().is_used(log_page));
    EXPECT_TRUE(owner.is_used(kFirstPage + 10));
    EXPECT_EQ(home->audit(), "");
    // Nothing of what waits is used by others, however much they take.
    std::uint64_t taken = 0;
    for (Extent each; (each = home->blocks().allocate(0, 1, Urgency::frees)).count > 0; ++taken) {
      EXPECT_NE(each.first, log_page);
      home.context.allocated.push_back(each);
    }
    EXPECT_GT(taken, 100U);
    EXPECT_LT(thread.executor.now(), *next) << "the test is too slow to tell";
    home->undo(home.context);
    co_await sleep_until(begin + Milliseconds(1));
    EXPECT_EQ(home.append(file, pages(0, 10 + 500, 1, kBlock)), std::errc{});
    EXPECT_FALSE(home->blocks().is_used(log_page));
    EXPECT_EQ(owner.used, numbers({20 + written - 1, 510})) << "the last one waits";
    EXPECT_EQ(home->audit(), "");
    home->save();
    EXPECT_FALSE(home->next_free().has_value());
    EXPECT_EQ(owner.used, numbers({510}));
    EXPECT_EQ(home->audit(), "");
  });
}

TEST(NovaDelay, EndsALackOfSpace) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    OpenVolume home = co_await open_home(thread, kHome, nullptr, Milliseconds(1));
    const std::uint64_t file = home.create(kRootNumber, "a");
    const std::vector<std::byte> data = bytes(kBlock);
    const auto write = [&] { return home.operations->write(file, 0, data, {}); };
    for (int round = 0; round < 3; ++round) {
      int writes = 0;
      while (writes < 1000 && write().has_value()) ++writes;
      EXPECT_GT(writes, 50);
      EXPECT_LT(writes, 1000) << "more than there are blocks";
      EXPECT_EQ(write().error(), std::errc::no_space_on_device);
      EXPECT_EQ(home->audit(), "");
      // A write needs a block for its data, perhaps one for its log, and must leave the reserve.
      bool has_space = false;
      for (int waits = 0; waits < 3 && !has_space; ++waits) {
        const auto next = home->next_free();
        EXPECT_TRUE(next.has_value());
        if (!next) co_return;
        co_await sleep_until(*next);
        has_space = write().has_value();
      }
      EXPECT_TRUE(has_space) << "in round " << round;
      EXPECT_EQ(home->audit(), "");
      co_await sleep_for(Milliseconds(1));
    }
    EXPECT_TRUE(home.operations->remove(kRootNumber, "a", false, {}).has_value());
    home->save();
    EXPECT_EQ(home->audit(), "");
    EXPECT_GT(home->blocks().free_count() + 4, home->blocks().capacity());
  });
}

}  // namespace
}  // namespace perdura::systems::nova::test
