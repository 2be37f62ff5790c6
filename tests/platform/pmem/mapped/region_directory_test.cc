// The names of regions inside a DAX device: found again after any power failure, and refused if
// they are not ours.
#include "platform/pmem/mapped/region_directory.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "platform/base/error.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::pmem::mapped {
namespace {

using test::ExploredRegion;
using test::Image;
using test::PlainMemory;

constexpr DeviceGeometry kDevice{64 << 20, 2 << 20};
constexpr const char* kPath = "/dev/dax0.0";

std::string found_in(Region& memory) {
  std::string names;
  for (const NamedExtent& region : RegionDirectory(memory, kDevice, kPath).regions()) {
    names += fmt::format("{} {} {};", region.name, region.extent.offset, region.extent.length);
  }
  return names;
}

std::string found_in(const Image& image) {
  PlainMemory memory(image);
  return found_in(memory.region());
}

class Explored : public testing::TestWithParam<PersistenceDomain> {
 protected:
  // Runs a change with a power failure at each of its steps, and with each image that it may leave:
  // there must be what was before or what is afterwards, and only that once the change is done.
  void change(const std::function<void(RegionDirectory&)>& make) {
    const Image start = contents_;
    std::string after;
    {
      PlainMemory memory(start);
      RegionDirectory directory(memory.region(), kDevice, kPath);
      make(directory);
      after = found_in(memory.region());
    }
    const std::string before = found_in(start);
    ExploredRegion explored(start, {.domain = GetParam()});
    std::set<std::string> left;
    explored.memory->after_step = [&] {
      explored.memory->for_each_image([&](const Image& image) {
        ++images_;
        left.insert(found_in(image));
      });
    };
    RegionDirectory directory(explored.region, kDevice, kPath);
    make(directory);
    for (const std::string& found : left) EXPECT_TRUE(found == before || found == after) << found;
    EXPECT_TRUE(left.contains(after));
    explored.memory->for_each_image([&](const Image& image) { EXPECT_EQ(found_in(image), after); });
    contents_ = explored.memory->visible();
  }

  Image contents_ = Image(RegionDirectory::kSize);
  int images_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Domains, Explored,
                         testing::Values(PersistenceDomain::dmp, PersistenceDomain::mhp),
                         [](const auto& domain) { return std::string(to_string(domain.param)); });

TEST_P(Explored, AreThereWithAllOfTheirEntryOrNotAtAll) {
  change([](RegionDirectory&) {});  // the directory itself
  change([](RegionDirectory& all) { all.add({"first", {2 << 20, 5000}}); });
  // Longer than the first line of its entry, whose stores are durable in their order anyway.
  const std::string name(45, 'n');
  change([&](RegionDirectory& all) { all.add({name, {4 << 20, 1}}); });
  change([&](RegionDirectory& all) { EXPECT_TRUE(all.remove(name)); });
  // In the removed one's place, whose name is longer.
  change([](RegionDirectory& all) { all.add({"short", {6 << 20, 77}}); });
  change([](RegionDirectory& all) { EXPECT_TRUE(all.remove("first")); });
  EXPECT_EQ(found_in(contents_), "short 6291456 77;");
  EXPECT_GT(images_, 30);
}

TEST(RegionDirectory, HoldsAsManyAsFitAndThenRefuses) {
  PlainMemory memory(RegionDirectory::kSize);
  RegionDirectory all(memory.region(), kDevice, kPath);
  const std::string longest(RegionDirectory::kMaxName - 4, 'n');
  for (std::size_t i = 0; i < RegionDirectory::kEntries; ++i) {
    all.add({fmt::format("{}{:04}", longest, i), {(i + 1) * kDevice.alignment, i + 1}});
  }
  EXPECT_THROW(all.add({"more", {0, 1}}), UsageError);
  EXPECT_EQ(all.regions().size(), RegionDirectory::kEntries);
  EXPECT_EQ(all.find(longest + "0500"), (Extent{501 * kDevice.alignment, 501}));
  EXPECT_FALSE(all.find("more").has_value());
  EXPECT_FALSE(all.remove("more"));
  EXPECT_TRUE(all.remove(longest + "0500"));
  all.add({"more", {0, 1}});
  EXPECT_EQ(all.find("more"), (Extent{0, 1}));
}

std::string refusal(Region& memory, DeviceGeometry device = kDevice) {
  try {
    static_cast<void>(RegionDirectory(memory, device, kPath).regions());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// Every bit that counts is watched over by a seal, and every other word is nobody's.
TEST(RegionDirectory, RefusesEveryDamage) {
  PlainMemory memory(RegionDirectory::kSize);
  RegionDirectory(memory.region(), kDevice, kPath).add({"name", {2 << 20, 5000}});
  ASSERT_EQ(refusal(memory.region()), "");
  constexpr Bytes kHeader = 5 * kWord;
  constexpr Bytes kEntry = RegionDirectory::kEntrySize;
  for (Bytes at = 0; at < kEntry + 4 * kWord; ++at) {
    if (at >= kHeader && at < kEntry) continue;
    std::byte& byte = memory.region().data()[at];
    const std::byte good = byte;
    for (unsigned bit = 0; bit < 8; ++bit) {
      byte = good ^ static_cast<std::byte>(1U << bit);
      EXPECT_NE(refusal(memory.region()), "") << "bit " << bit << " of byte " << at;
    }
    byte = good;
  }
}

TEST(RegionDirectory, OverwritesNothingOfSomebodyElse) {
  for (Bytes at = 0; at < RegionDirectory::kSize; at += 1000) {
    PlainMemory other(RegionDirectory::kSize);
    other.region().data()[at] = std::byte{1};
    EXPECT_EQ(refusal(other.region()),
              "/dev/dax0.0 holds something that is not a directory of regions; to give all of the "
              "device to perdura, clear it with daxio --zero --output /dev/dax0.0 (package "
              "pmdk-tools)")
        << at;
  }
}

TEST(RegionDirectory, BelongsToOneSizeAndAlignment) {
  PlainMemory memory(RegionDirectory::kSize);
  RegionDirectory(memory.region(), kDevice, kPath);
  EXPECT_EQ(refusal(memory.region()), "");
  EXPECT_TRUE(refusal(memory.region(), {kDevice.size / 2, kDevice.alignment})
                  .starts_with("/dev/dax0.0 holds regions of a device of 67108864 bytes with "
                               "alignment 2097152, but is one of 33554432 with 2097152; "));
  EXPECT_NE(refusal(memory.region(), {kDevice.size, 4096}), "");
}

}  // namespace
}  // namespace perdura::pmem::mapped
