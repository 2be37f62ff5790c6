// A repair that is interrupted at each of its moments, by the death of its process or by a power
// failure. Whoever finds the file system then mounts it, or repairs it again. Neither may cost
// anything that was whole before the repair, nor anything that a repair without a failure keeps.
#include <gtest/gtest.h>

#include "platform/sim/sim_platform.h"
#include "tests/support/explore.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/nova/damaged_images.h"

namespace perdura::systems::nova::test {
namespace {

struct DamagedImage {
  std::string done{};  // to the file system that was whole
  std::vector<std::byte> bytes{};
  bool is_unmounted = false;
  bool is_mountable = false;
  std::set<std::string> whole{};  // paths
  fs::Tree original{};
  fs::Tree repaired{};  // without a failure
};

// The bit that says that a regular file exists is lost, and nothing else.
std::string forget_a_file(pmem::Region& region, const Structures& structures,
                          std::mt19937_64& random) {
  constexpr std::string_view kWords = "inode's words";
  const auto words = std::find_if(structures.kinds.begin(), structures.kinds.end(),
                                  [&](const auto& kind) { return kind.first == kWords; });
  std::vector<Bytes> regular;
  for (const Bytes inode : words->second) {
    if (S_ISREG(region.read_object<InodeRecord>(inode).base.mode)) regular.push_back(inode);
  }
  const Bytes place = regular.at(random() % regular.size()) + kStateWord;
  region.store(place, region.load(place) & ~std::uint64_t{1});
  return fmt::format("the state at {:#x}: the lowest bit", place);
}

bool has_regular_file(const fs::Model& model) {
  const fs::Tree tree = fs::tree_of(model, kTree);
  return std::any_of(tree.names.begin(), tree.names.end(),
                     [&](const auto& name) { return S_ISREG(tree.files[name.second].mode); });
}

// Some that have something to repair, of one file system.
Task<> make_images(Thread& thread, std::uint32_t seed, bool unmounts, std::size_t count,
                   std::vector<DamagedImage>& images) {
  std::mt19937_64 random(seed);
  fs::test::RandomOperations operations(thread, kNova, roomy(), seed);
  co_await operations.begin();
  for (int i = 0; i < 100 || !has_regular_file(operations.model()); ++i) {
    co_await operations.step();
  }
  if (unmounts) co_await operations.mount_again(true);
  // What has no name ends when it is mounted again.
  const fs::Tree original = fs::tree_of(operations.model(), kTree);
  if (unmounts) {
    co_await operations.unmount();
  } else {
    operations.die();
  }
  const auto region = thread.node.open_region("home");
  std::vector<std::byte> whole(region->size());
  region->read(0, whole);
  const Structures structures = structures_of(*region, *stored_geometry(*region, 0));
  while (images.size() < count) {
    DamagedImage image{.is_unmounted = unmounts, .original = original};
    region->write(0, whole);
    if (images.size() % 4 == 0) {
      image.done = forget_a_file(*region, structures, random);
    } else {
      for (std::uint64_t i = 0, places = 1 + random() % 3; i < places; ++i) {
        image.done += damage_one(*region, structures, random) + "; ";
      }
    }
    image.bytes.resize(whole.size());
    region->read(0, image.bytes);
    if (const auto before = co_await read_mounted(thread, true)) {
      image.is_mountable = true;
      image.whole = whole_paths(*before, original);
    }
    region->write(0, image.bytes);
    const std::vector<fs::Damage> damage = co_await kNova.inspect(thread, "home", true);
    if (damage.empty()) continue;
    if (const auto repaired = co_await read_mounted(thread, true)) image.repaired = *repaired;
    images.push_back(std::move(image));
  }
}

// What each regular file and symbolic link has, wherever it is: a name may be another one, and with
// it the times and the number of names.
std::vector<fs::TreeFile> contents_of(const fs::Tree& tree) {
  std::vector<fs::TreeFile> contents;
  for (fs::TreeFile file : tree.files) {
    if (S_ISDIR(file.mode)) continue;
    file.links = 0;
    file.changed = {};
    contents.push_back(std::move(file));
  }
  return contents;
}

// The same file with the same data, or, if `may_have_holes`, with a part of it.
bool is_kept(fs::TreeFile found, fs::TreeFile kept, bool may_have_holes) {
  if (found == kept) return true;
  const auto is_in_kept = [&](const fs::Extent& extent) {
    return std::any_of(kept.data.begin(), kept.data.end(), [&](const fs::Extent& whole) {
      return extent.offset >= whole.offset &&
             extent.offset + extent.bytes.size() <= whole.offset + whole.bytes.size() &&
             std::equal(
                 extent.bytes.begin(), extent.bytes.end(),
                 whole.bytes.begin() + static_cast<std::ptrdiff_t>(extent.offset - whole.offset));
    });
  };
  if (!may_have_holes || !std::all_of(found.data.begin(), found.data.end(), is_in_kept)) {
    return false;
  }
  found.data = kept.data = {};
  return found == kept;
}

// A repair of one image, and what is done when it has been interrupted.
class InterruptedRepair {
 public:
  enum class Then { mount, repair };

  InterruptedRepair(const DamagedImage& image, bool by_power, Then then, sim::Failure& failure)
      : image_(image),
        by_power_(by_power),
        then_(then),
        failure_(failure),
        platform_(perdura::test::erda_testbed(), 1) {
    platform_.track_durability({pmem::PersistenceDomain::dmp, false});
  }

  void run() {
    failure_.enable(false);
    start([this](Thread& thread) { return repair(thread); });
    failure_.watch(platform_, [this](pmem::Choices& choices) {
      by_power_ ? platform_.fail_power(0, choices) : platform_.kill(0);
      start([this](Thread& thread) { return go_on(thread); });
    });
    platform_.run();
    EXPECT_EQ(failure_.happened(), has_ended_);
  }

 private:
  void start(std::function<Task<>(Thread&)> body) {
    platform_.start(0, 0, CompletionMode::polling, std::move(body));
  }

  Task<> repair(Thread& thread) {
    {
      const auto region = thread.node.create_region("home", image_.bytes.size(), pmem::Medium::pm);
      for (Bytes at = 0; at < image_.bytes.size(); at += kBlock) {
        const auto block = std::span(image_.bytes).subspan(at, kBlock);
        if (std::all_of(block.begin(), block.end(),
                        [](std::byte each) { return each == std::byte{}; })) {
          continue;
        }
        region->write(at, block);
        region->flush(at, kBlock);
      }
      region->drain();
    }
    co_await sleep_for(Nanoseconds(1));  // what has been done takes until then
    failure_.enable(true);
    static_cast<void>(co_await kNova.inspect(thread, "home", true));
    co_await sleep_for(Nanoseconds(1));
    failure_.enable(false);
  }

  Task<> go_on(Thread& thread) {
    if (then_ == Then::mount && image_.is_mountable) {
      const std::optional<fs::Tree> mounted = co_await read_mounted(thread, false);
      EXPECT_TRUE(mounted.has_value()) << "it could be mounted before the repair";
      if (mounted) expect_whole(*mounted);
    }
    std::string text;
    bool all_repaired = true;
    for (const fs::Damage& each : co_await kNova.inspect(thread, "home", true)) {
      text += each.where + ": " + each.what + "\n";
      all_repaired &= each.repaired;
    }
    SCOPED_TRACE(text);
    EXPECT_TRUE(all_repaired);
    const std::optional<fs::Tree> mounted = co_await read_mounted(thread, false);
    EXPECT_TRUE(mounted.has_value()) << "it is not mounted after two repairs";
    if (mounted) {
      EXPECT_TRUE(mounted->problems.empty()) << mounted->problems.front();
      expect_whole(*mounted);
      expect_kept(*mounted);
    }
    has_ended_ = true;
  }

  void expect_whole(const fs::Tree& found) {
    const std::set<std::string> still = whole_paths(found, image_.original);
    for (const std::string& path : image_.whole) EXPECT_TRUE(still.contains(path)) << path;
  }

  void expect_kept(const fs::Tree& found) {
    const std::vector<fs::TreeFile> there = contents_of(found);
    for (const auto& [path, number] : image_.repaired.names) {
      fs::TreeFile kept = image_.repaired.files[number];
      if (S_ISDIR(kept.mode)) continue;
      kept.links = 0;
      kept.changed = {};
      // The repair may have ended after it had forgotten the bitmaps of a clean unmount, which proved
      // that blocks were the file's.
      EXPECT_TRUE(std::any_of(
          there.begin(), there.end(),
          [&](const fs::TreeFile& each) { return is_kept(each, kept, image_.is_unmounted); }))
          << path << " is not kept by a repair that was interrupted";
    }
  }

  const DamagedImage& image_;
  const bool by_power_;
  const Then then_;
  sim::Failure& failure_;
  bool has_ended_ = false;
  // Declared last, so destroyed first: its threads use the members above.
  sim::SimPlatform platform_;
};

std::vector<DamagedImage> images_of(std::uint32_t seed, bool unmounts, std::size_t count) {
  std::vector<DamagedImage> images;
  const auto platform = perdura::test::make_platform("shm", 1);
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) {
    return make_images(thread, seed, unmounts, count, images);
  });
  platform->run();
  return images;
}

// `moments`: so many of each repair are tried, or all.
void expect_repairs_again(std::size_t count, std::uint64_t moments) {
  using Then = InterruptedRepair::Then;
  const std::uint32_t seed = perdura::test::random_seed();
  std::uint64_t tried = 0;
  std::uint32_t number = 0;
  for (const bool unmounts : {true, false}) {
    const std::vector<DamagedImage> images = images_of(seed, unmounts, count);
    for (const DamagedImage& image : images) {
      ++number;
      SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed << ": " << image.done);
      for (const bool by_power : {true, false}) {
        const Then then = (number + by_power) % 2 == 0 ? Then::mount : Then::repair;
        const auto scenario = [&](sim::Failure& failure) {
          SCOPED_TRACE(failure.text());
          InterruptedRepair(image, by_power, then, failure).run();
        };
        const std::uint64_t all = sim::list_crash_points(scenario).size();
        const std::uint64_t stride = std::max<std::uint64_t>(1, all / moments);
        tried += perdura::test::explore_until_failure({.images = sim::Images::random,
                                                       .seed = seed,
                                                       .first = (seed + number) % stride,
                                                       .stride = stride},
                                                      scenario)
                     .tried;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  testing::Test::RecordProperty("tried", static_cast<int>(tried));
  EXPECT_GT(tried, 4 * count);
}

TEST(NovaRepair, MayBeInterrupted) { expect_repairs_again(2, 40); }
TEST(NovaRepairs, MayBeInterruptedAtManyMoments) { expect_repairs_again(8, 100); }

}  // namespace
}  // namespace perdura::systems::nova::test
