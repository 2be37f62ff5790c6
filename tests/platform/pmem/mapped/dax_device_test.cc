// Regions inside a DAX device, on an ordinary file of a device's shape.
#include "platform/pmem/mapped/dax_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "platform/base/error.h"
#include "tests/platform/shm/process.h"

namespace perdura::pmem::mapped {
namespace {

constexpr Bytes kAlignment = 512 * 1024;

class Device : public testing::Test {
 protected:
  Device() { resize(5 * kAlignment); }  // the directory, and room for four pieces
  void resize(Bytes size) {
    geometry_ = {size, kAlignment};
    std::ofstream(path_).close();
    ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(size)), 0);
  }
  DaxDevice device() { return DaxDevice(path_, geometry_); }
  std::string names() {
    std::string all;
    for (const NamedExtent& region : device().regions()) all += region.name + ' ';
    return all;
  }
  template <class Work>
  static std::string refusal(const Work& work) {
    try {
      work();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  shm_test::TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/device";
  DeviceGeometry geometry_;
};

bool is_zero(const Mapping& memory) {
  return std::all_of(memory.data(), memory.data() + memory.mapped_size(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

TEST_F(Device, KeepsRegionsUnderTheirNames) {
  {
    const auto a = device().create("run/node-0/a", 5000);
    EXPECT_EQ(a->size(), 5000U);
    EXPECT_EQ(a->mapped_size(), kAlignment);
    EXPECT_TRUE(is_zero(*a));
    a->data()[4999] = std::byte{7};
    const auto b = device().create("run/node-0/b", kAlignment + 1);
    EXPECT_EQ(b->mapped_size(), 2 * kAlignment);
    EXPECT_EQ(device().open("run/node-0/a"), a) << "mapped a second time";
  }
  EXPECT_EQ(names(), "run/node-0/a run/node-0/b ");
  EXPECT_EQ(device().open("run/node-0/a")->data()[4999], std::byte{7});
  EXPECT_EQ(device().open("run/node-0"), nullptr);
  for (const NamedExtent& region : device().regions()) {
    EXPECT_EQ(region.extent.offset % kAlignment, 0U);
  }
}

TEST_F(Device, GivesZerosInAPlaceThatWasUsedBefore) {
  auto memory = device().create("a", 4 * kAlignment);
  std::fill_n(memory->data(), memory->size(), std::byte{0xFF});
  memory.reset();
  device().remove("a");
  device().remove("a");
  EXPECT_EQ(names(), "");
  EXPECT_TRUE(is_zero(*device().create("b", 4 * kAlignment)));
}

TEST_F(Device, GivesNobodyMemoryThatIsStillMapped) {
  auto old = device().create("a", 3 * kAlignment);
  device().remove("a");
  auto other = device().create("a", kAlignment);
  EXPECT_NE(refusal([&] { device().create("b", kAlignment); }), "");
  old->data()[0] = std::byte{1};
  EXPECT_TRUE(is_zero(*other));
  old.reset();
  EXPECT_TRUE(is_zero(*device().create("b", 3 * kAlignment)));
}

// A process that is killed holds nothing any more.
TEST_F(Device, ForgetsTheLocksOfProcessesThatDied) {
  const shm_test::Process victim([this](const shm_test::Process::Voice& voice) {
    auto mapped = device().create("a", 4 * kAlignment);
    device().remove("a");
    voice.say('m');
    ::pause();
  });
  ASSERT_TRUE(victim.hears('m'));
  EXPECT_NE(refusal([&] { device().create("b", kAlignment); }), "");
  const_cast<shm_test::Process&>(victim).kill();
  EXPECT_NE(device().create("b", 4 * kAlignment), nullptr);
}

TEST_F(Device, UsesEveryGapThatIsLargeEnough) {
  for (const char* name : {"a", "b", "c", "d"}) {
    static_cast<void>(device().create(name, kAlignment));
  }
  device().remove("b");
  device().remove("d");
  EXPECT_EQ(refusal([&] { device().create("e", 2 * kAlignment); }),
            "no room for 1048576 bytes of " + path_ +
                "/e: the device has 2621440, of which 1048576 are free, 524288 of them in one "
                "piece, and 2 regions are there; choose a smaller size, make the namespace larger "
                "(ndctl create-namespace --size), or clear the device (daxio --zero --output " +
                path_ + ") if killed runs left them");
  device().remove("c");
  static_cast<void>(device().create("e", 3 * kAlignment));
  EXPECT_EQ(names(), "a e ");
}

TEST_F(Device, RemovesAllOfARun) {
  for (const char* name : {"run-1/a", "run-1/b", "run-11/a", "other"}) {
    static_cast<void>(device().create(name, 1));
  }
  device().remove_all("run-1/");
  EXPECT_EQ(names(), "run-11/a other ");
}

TEST_F(Device, RefusesWhatCannotBe) {
  static_cast<void>(device().create("a", 1));
  EXPECT_EQ(refusal([&] { device().create("a", 1); }),
            path_ + "/a exists already; remove it or choose another name");
  EXPECT_NE(refusal([&] { device().create("b", 0); }), "");
  EXPECT_NE(refusal([&] { device().create("", 1); }), "");
  EXPECT_NE(refusal([&] { device().create(std::string(RegionDirectory::kMaxName + 1, 'x'), 1); }),
            "");
  EXPECT_EQ(names(), "a ");
}

TEST_F(Device, SaysWhenItIsTooSmall) {
  resize(2 * kAlignment - 1);
  EXPECT_EQ(refusal([&] { device(); }),
            path_ +
                " is too small: it has 1048575 bytes, but the directory of regions and one region "
                "need 1048576 at its alignment of 524288; make its namespace larger, or its "
                "alignment smaller (ndctl create-namespace --mode devdax --size SIZE --align 2M)");
  resize(2 * kAlignment);
  EXPECT_NE(device().create("a", kAlignment), nullptr);
}

TEST_F(Device, CountsNoWritesOfItsOwn) {
  const Writes before = thread_write_meter().writes();
  static_cast<void>(device().create("a", 1));
  device().remove("a");
  EXPECT_EQ(thread_write_meter().writes(), before);
}

TEST(DevicePath, IsOfDaxDevicesOnly) {
  for (const char* path : {"/dev/null", "/dev/null/x", "/dev/shm/x", "/", "/no/such", "relative"}) {
    EXPECT_FALSE(device_path(path).has_value()) << path;
  }
}

TEST(BadBlocks, AreRefusedWithTheirNumberAndPlace) {
  const auto refusal = [](std::vector<Extent> extents, bool device) -> std::string {
    try {
      refuse_bad_blocks({std::move(extents), ""}, "/dev/dax0.0", device);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({}, true), "");
  EXPECT_EQ(refusal({{4096, 512}}, true),
            "/dev/dax0.0 has 1 bad block (512 bytes, at offset 4096) whose contents are lost and "
            "which end a process that reads them; clear them with ndctl clear-errors NAMESPACE "
            "(see ndctl list --media-errors), which loses these bytes, or name another device");
  EXPECT_EQ(refusal({{0, 512}, {1024, 1024}, {4096, 512}, {8192, 512}}, false),
            "/dev/dax0.0 has 4 bad blocks (2560 bytes, at offset 0, 1024, 4096, ...) whose "
            "contents are lost and which end a process that reads them; save what can be read, "
            "remove the file and clear them with ndctl clear-errors, or choose another directory");
}

}  // namespace
}  // namespace perdura::pmem::mapped
