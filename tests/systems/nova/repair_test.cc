// Damaged file systems, before and after a repair: each can be mounted for writing, what was whole
// is whole, and what is damaged costs itself alone.
#include <fmt/format.h>

#include <random>
#include <set>

#include "tests/support/seed.h"
#include "tests/systems/nova/damaged_images.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

using fs::kRootInode;

// --- the thousand images

Task<> expect_usable(Thread& thread, const std::set<std::string>& whole, const fs::Tree& original) {
  std::shared_ptr<fs::FileSystem> files;
  try {
    files = co_await kNova.mount(thread, "home", roomy());
  } catch (const UsageError& error) {
    ADD_FAILURE() << "it is not mounted: " << error.what();
    co_return;
  }
  const std::string audit = co_await files->audit();
  EXPECT_EQ(audit, "");
  {
    const auto session = files->attach(thread);
    const fs::Tree found = co_await fs::read_tree(*session, kTree);
    const std::set<std::string> still = whole_paths(found, original);
    for (const std::string& path : whole) EXPECT_TRUE(still.contains(path)) << path;
    const auto made = co_await session->create(kRootInode, "new file", {.mode = S_IFREG}, {});
    EXPECT_TRUE(made.has_value());
    if (made) {
      const auto written = co_await session->write(made->inode, 0, bytes(5000), {});
      EXPECT_TRUE(written.has_value());
    }
  }
  co_await files->unmount();
  files.reset();
  for (const fs::Damage& each : co_await kNova.inspect(thread, "home", false)) {
    ADD_FAILURE() << "after writing, " << each.where << ": " << each.what;
  }
}

// How many images have met what they are to meet.
struct Met {
  int images = 0;
  int damaged = 0;
  int lost_something = 0;
  int refused = 0;
  int in_lost_and_found = 0;
};

Task<> try_images(Thread& thread, bool unmounts, int count, std::uint32_t seed, Met& met) {
  std::mt19937_64 random(seed);
  fs::Tree original;
  std::vector<std::byte> image;
  Structures structures;
  {
    fs::test::RandomOperations operations(thread, kNova, roomy(), seed);
    co_await operations.begin();
    for (int i = 0; i < 200; ++i) co_await operations.step();
    if (unmounts) co_await operations.mount_again(true);
    // What has no name ends when it is mounted again.
    original = fs::tree_of(operations.model(), kTree);
    if (unmounts) co_await operations.unmount();
    const auto region = thread.node.open_region("home");
    fill_what_is_free(*region, *stored_geometry(*region, 0));
    image.resize(region->size());
    region->read(0, image);
    structures = structures_of(*region, *stored_geometry(*region, 0));
  }
  for (int round = 0; round < count && !testing::Test::HasFailure(); ++round) {
    const auto region = thread.node.open_region("home");
    region->write(0, image);
    std::string done;
    for (std::uint64_t i = 0, places = random() % 3 == 0 ? 2 + random() % 3 : 1; i < places; ++i) {
      done += damage_one(*region, structures, random) + "; ";
    }
    SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed << ", image " << round << ", "
                                    << (unmounts ? "unmounted" : "killed") << ": " << done);
    std::vector<std::byte> damaged(image.size());
    region->read(0, damaged);
    const std::optional<fs::Tree> before = co_await read_mounted(thread, true);
    const std::set<std::string> whole =
        before ? whole_paths(*before, original) : std::set<std::string>();
    ++met.images;
    if (!before) ++met.refused;
    if (before && whole.size() < original.names.size()) ++met.lost_something;
    // As it is: one file that is damaged is no reason to refuse.
    region->write(0, damaged);
    if (before) {
      const std::optional<fs::Tree> mounted = co_await read_mounted(thread, false);
      EXPECT_TRUE(mounted.has_value()) << "it can be mounted for reading only";
    }
    region->write(0, damaged);
    std::string text;
    bool all_repaired = true;
    for (const fs::Damage& each : co_await kNova.inspect(thread, "home", true)) {
      text += each.where + ": " + each.what + "\n";
      all_repaired &= each.repaired;
    }
    if (!text.empty()) ++met.damaged;
    EXPECT_TRUE(all_repaired) << text;
    SCOPED_TRACE(text);
    co_await expect_usable(thread, whole, original);
    const std::optional<fs::Tree> after = co_await read_mounted(thread, true);
    if (!after) continue;
    if (after->names.contains("/lost+found")) ++met.in_lost_and_found;
    // The words of inodes and the links of logs have no checksums, so an inode may go back to an
    // earlier state unnoticed.
    if (done.find("words") != std::string::npos || done.find("trailer") != std::string::npos) {
      continue;
    }
    for (const std::string& path : paths_with_others(*after)) {
      ADD_FAILURE() << path << " shows what another file had";
    }
  }
}

void expect_repairs(bool unmounts, int count) {
  const std::uint32_t seed = perdura::test::random_seed();
  Met met;
  constexpr int kOfATree = 25;
  for (int tree = 0; tree * kOfATree < count && !testing::Test::HasFailure(); ++tree) {
    const auto platform = perdura::test::make_platform("shm", 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) {
      return try_images(thread, unmounts, kOfATree, seed + static_cast<std::uint32_t>(tree), met);
    });
    platform->run();
  }
  testing::Test::RecordProperty("damaged", met.damaged);
  testing::Test::RecordProperty("lost", met.lost_something);
  testing::Test::RecordProperty("refused", met.refused);
  testing::Test::RecordProperty("found", met.in_lost_and_found);
  if (testing::Test::HasFailure()) return;
  // The boundary was met: of the images some lose a file, some the root directory.
  EXPECT_GT(met.damaged, count / 4);
  EXPECT_GT(met.lost_something, count / 8);
  EXPECT_GT(met.refused, 0);
  EXPECT_GT(met.in_lost_and_found, count / 16);
}

TEST(NovaRepair, OfAHundredImagesLeavesWhatIsWhole) {
  expect_repairs(true, 100);
  expect_repairs(false, 100);
}
TEST(NovaRepairs, OfAThousandUnmountedImagesLeaveWhatIsWhole) { expect_repairs(true, 1000); }
TEST(NovaRepairs, OfAThousandKilledImagesLeaveWhatIsWhole) { expect_repairs(false, 1000); }

// --- the blocks of what is damaged

Task<fs::Tree> repaired_tree(Thread& thread) {
  co_await kNova.inspect(thread, "home", true);
  const std::optional<fs::Tree> tree = co_await read_mounted(thread, true);
  EXPECT_TRUE(tree.has_value());
  co_return tree.value_or(fs::Tree());
}

// Loses a line of an inode; of its words, only the bit that says that it exists.
void lose(pmem::Region& region, std::string_view kind, Bytes line) {
  if (kind == "inode's words") {
    region.store(line + kStateWord, region.load(line + kStateWord) & ~std::uint64_t{1});
    return;
  }
  constexpr std::array<std::byte, kCacheLine> kNothing{};
  region.write(line, kNothing);
}

// Each line of the inodes and of their logs is lost, one at a time. Returns the number of images
// with a file that only a repair finds.
Task<int> lose_each_line(Thread& thread, bool unmounts, std::uint32_t seed) {
  {
    fs::test::RandomOperations operations(thread, kNova, roomy(), seed);
    co_await operations.begin();
    for (int i = 0; i < 200; ++i) co_await operations.step();
    co_await operations.mount_again(true);
    if (unmounts) co_await operations.unmount();
  }
  const auto region = thread.node.open_region("home");
  std::vector<std::byte> image(region->size());
  region->read(0, image);
  constexpr std::array<std::string_view, 4> kOfInodes{"inode's words", "inode's base", "log entry",
                                                      "page trailer"};
  int found = 0;
  for (const auto& [kind, lines] : structures_of(*region, *stored_geometry(*region, 0)).kinds) {
    if (std::find(kOfInodes.begin(), kOfInodes.end(), kind) == kOfInodes.end()) continue;
    for (const Bytes line : lines) {
      region->write(0, image);
      lose(*region, kind, line);
      SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed << ", " << kind << " at "
                                      << line << (unmounts ? ", unmounted" : ", killed"));
      // Of a root directory that is damaged nothing is mounted, and so nothing written.
      if (!co_await read_mounted(thread, false)) continue;
      region->write(0, image);
      lose(*region, kind, line);
      const fs::Tree at_once = co_await repaired_tree(thread);
      region->write(0, image);
      lose(*region, kind, line);
      co_await overwrite_what_is_free(thread);
      const fs::Tree later = co_await repaired_tree(thread);
      const std::set<std::string> whole = whole_paths(later, at_once);
      for (const auto& [path, number] : at_once.names) EXPECT_TRUE(whole.contains(path)) << path;
      if (at_once.names.contains("/lost+found")) ++found;
      if (testing::Test::HasFailure()) co_return found;
    }
  }
  co_return found;
}

// A file that cannot be read keeps what a repair would find, whatever is written until then.
void expect_to_find_as_much(int trees) {
  const std::uint32_t seed = perdura::test::random_seed();
  for (int tree = 0; tree < 2 * trees; ++tree) {
    int found = 0;
    const auto platform = perdura::test::make_platform("shm", 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      found = co_await lose_each_line(thread, tree % 2 == 0,
                                      seed + static_cast<std::uint32_t>(tree / 2));
    });
    platform->run();
    if (testing::Test::HasFailure()) return;
    EXPECT_GT(found, 0);
  }
}

TEST(NovaRepair, FindsAsMuchAfterAllFreeBlocksWereOverwritten) { expect_to_find_as_much(1); }
TEST(NovaRepairs, FindAsMuchInManyTreesAfterAllFreeBlocksWereOverwritten) {
  expect_to_find_as_much(15);
}

}  // namespace
}  // namespace perdura::systems::nova::test
