// The layout of bound files, as a device knows it that is told of all changes (layout_callbacks.h):
// the same bytes as in the file, no others, and no block that anybody else may have.
#include <fmt/format.h>

#include <map>
#include <random>

#include "platform/fabric/extents.h"
#include "systems/nova/layout_callbacks.h"
#include "tests/support/seed.h"
#include "tests/systems/nova/volume_support.h"

namespace perdura::systems::nova::test {
namespace {

// A device that carries out each change at once, or never finishes one.
class ToldDevice final : public LayoutCallbacks {
 public:
  struct ToldFile {
    Bytes size = 0;
    fabric::ExtentTable table;
    bool is_there = false;
  };

  void cm_bind(std::uint64_t inode) override { files[inode].is_there = true; }
  void cm_init(std::uint64_t inode, Bytes size,
               std::span<const fs::MappedExtent> extents) override {
    EXPECT_TRUE(files[inode].is_there);
    cm_update(inode, size, 0, 0, extents);
  }
  void cm_update(std::uint64_t inode, Bytes size, Bytes at, Bytes length,
                 std::span<const fs::MappedExtent> extents) override {
    cm_invalidate(inode, size, at, length);
    for (const fs::MappedExtent& each : extents) {
      files[inode].table.map({each.in_file, each.in_region, each.length}, Bytes{1} << 40);
    }
  }
  void cm_invalidate(std::uint64_t inode, Bytes size, Bytes at, Bytes length) override {
    files[inode].size = size;
    files[inode].table.unmap(at, length);
    ++calls;
  }
  void cm_destroy(std::uint64_t inode) override { files[inode].is_there = false; }
  bool cm_keeps(const Extent& blocks) override {
    if (is_busy) kept.push_back(blocks);
    return is_busy;
  }
  bool cm_is_behind() const override { return is_busy; }

  std::map<std::uint64_t, ToldFile> files;
  std::vector<Extent> kept;
  bool is_busy = false;
  int calls = 0;
};

class NovaBind : public testing::Test {
 protected:
  using Body = std::function<void(OpenVolume& home, ToldDevice& device)>;

  static void run(const Body& body) {
    const auto platform = perdura::test::make_platform("sim", 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await kNova.make(thread, "home", kHome);
      OpenVolume home = co_await open_home(thread, kHome, nullptr);
      ToldDevice device;
      home->call_back(device);
      body(home, device);
      EXPECT_TRUE(device.kept.empty());
      EXPECT_EQ(home->audit(), "");
    });
    platform->run();
  }

  static std::vector<std::byte> contents(OpenVolume& home, std::uint64_t file) {
    std::vector<std::byte> bytes(home.operations->attributes(file)->size);
    EXPECT_EQ(home.operations->read(file, 0, bytes), bytes.size());
    return bytes;
  }
  // The file as the device reads it, with zeros where it has nothing.
  static std::vector<std::byte> as_told(OpenVolume& home, const ToldDevice::ToldFile& file) {
    std::vector<std::byte> bytes(file.size);
    for (const fabric::Extent& extent : file.table.extents()) {
      EXPECT_LE(extent.at + extent.length, file.size) << "a part beyond the end";
      if (extent.at + extent.length > file.size) return {};
      home.region->read(extent.offset, std::span(bytes).subspan(extent.at, extent.length));
    }
    return bytes;
  }
  static std::vector<std::byte> some(std::mt19937& random, std::size_t most) {
    std::vector<std::byte> bytes(random() % most + 1);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 255 + 1);
    return bytes;
  }
  static void change(OpenVolume& home, std::uint64_t file, std::mt19937& random) {
    constexpr Bytes kMost = 6 * kBlock;
    const Bytes at = random() % 3 == 0 ? random() % 6 * kBlock : random() % kMost;
    switch (random() % 4) {
      case 0:
        (void)home.operations->write(file, std::nullopt, some(random, kBlock), {});
        break;
      case 1:
        (void)home.operations->truncate(file, at, {});
        break;
      case 2: {
        const auto mode = static_cast<fs::AllocationMode>(random() % 5);
        (void)home.operations->allocate(file, mode, at, random() % (2 * kBlock) + 1, {});
        break;
      }
      default:
        (void)home.operations->write(file, at, some(random, 3 * kBlock), {});
    }
  }
};

TEST_F(NovaBind, TellsOfEachChangeOfALayout) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
  run([&](OpenVolume& home, ToldDevice& device) {
    std::mt19937 random(seed);
    const std::uint64_t one = home.create(kRootNumber, "a");
    const std::uint64_t two = home.create(kRootNumber, "b");
    change(home, one, random);
    for (const std::uint64_t file : {one, two}) {
      EXPECT_TRUE(home.operations->hold(file).has_value());
      EXPECT_EQ(home->bind(file), std::errc{});
    }
    for (int i = 0; i < 3000 && !HasFailure(); ++i) {
      change(home, random() % 2 == 0 ? one : two, random);
      for (const std::uint64_t file : {one, two}) {
        EXPECT_EQ(device.files[file].size, home.operations->attributes(file)->size) << i;
        EXPECT_EQ(as_told(home, device.files[file]), contents(home, file)) << i;
      }
    }
  });
}

TEST_F(NovaBind, KeepsBlocksThatADeviceUses) {
  run([](OpenVolume& home, ToldDevice& device) {
    std::mt19937 random(1);
    const std::uint64_t file = home.create(kRootNumber, "a");
    const std::uint64_t other = home.create(kRootNumber, "b");
    EXPECT_TRUE(home.operations->write(file, 0, some(random, 4 * kBlock), {}).has_value());
    EXPECT_TRUE(home.operations->hold(file).has_value());
    EXPECT_EQ(home->bind(file), std::errc{});
    device.is_busy = true;
    const auto before = device.files[file].table;
    EXPECT_TRUE(home.operations->write(file, 0, some(random, 4 * kBlock), {}).has_value());
    EXPECT_TRUE(home.operations->truncate(file, 0, {}).has_value());
    EXPECT_FALSE(device.kept.empty());
    // Others write, and get other blocks.
    std::set<std::uint64_t> kept;
    for (const Extent& extent : device.kept) {
      for (std::uint64_t i = 0; i < extent.count; ++i) kept.insert(extent.first + i);
    }
    for (const fabric::Extent& extent : before.extents()) {
      EXPECT_TRUE(kept.contains(extent.offset / kBlock));
    }
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(home.operations->write(other, 0, some(random, 4 * kBlock), {}).has_value());
      const auto map = home.operations->map(other, 0, kBlock);
      EXPECT_TRUE(map.has_value());
      EXPECT_FALSE(kept.contains(map->front().in_region / kBlock));
      home.operations->unmap(other);
    }
    for (const std::uint64_t block : kept) EXPECT_TRUE(home->is_used(block));
    for (const Extent& extent : std::exchange(device.kept, {})) home->free_kept(extent);
    for (const std::uint64_t block : kept) EXPECT_FALSE(home->is_used(block));
  });
}

// A device that has not learned of several changes yet goes on with all that there was before them.
TEST_F(NovaBind, LeavesWhatADeviceReadsAsItWas) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
  run([&](OpenVolume& home, ToldDevice& device) {
    std::mt19937 random(seed);
    const std::uint64_t file = home.create(kRootNumber, "a");
    EXPECT_TRUE(home.operations->hold(file).has_value());
    EXPECT_EQ(home->bind(file), std::errc{});
    for (int i = 0; i < 1000 && !HasFailure(); ++i) {
      device.is_busy = true;
      const ToldDevice::ToldFile before = device.files[file];
      const std::vector<std::byte> read = as_told(home, before);
      for (auto changes = random() % 4 + 1; changes > 0; --changes) change(home, file, random);
      EXPECT_EQ(as_told(home, before), read) << i;
      device.is_busy = false;
      for (const Extent& extent : std::exchange(device.kept, {})) home->free_kept(extent);
      EXPECT_EQ(as_told(home, device.files[file]), contents(home, file)) << i;
    }
  });
}

TEST_F(NovaBind, EndsWhenItIsAskedTo) {
  run([](OpenVolume& home, ToldDevice& device) {
    std::mt19937 random(1);
    const std::uint64_t file = home.create(kRootNumber, "a");
    const std::uint64_t directory = home.create(kRootNumber, "d", S_IFDIR | 0755);
    EXPECT_TRUE(home.operations->hold(file).has_value());
    EXPECT_EQ(home->bind(file), std::errc{});
    EXPECT_EQ(home->bind(directory), std::errc::invalid_argument);
    EXPECT_EQ(home->bind(60), std::errc::no_such_file_or_directory);
    EXPECT_EQ(device.files.size(), 1U);
    home->unbind(file);
    EXPECT_FALSE(device.files[file].is_there);
    const int calls = device.calls;
    EXPECT_TRUE(home.operations->write(file, 0, some(random, kBlock), {}).has_value());
    EXPECT_EQ(device.calls, calls);
  });
}

}  // namespace
}  // namespace perdura::systems::nova::test
