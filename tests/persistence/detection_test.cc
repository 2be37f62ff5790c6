// What Linux tells, from trees like those below /sys and /proc, and devices that are not there.
#include "persistence/detection.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/support/temporary_directory.h"

namespace perdura::persistence {
namespace {

namespace fs = std::filesystem;

class DetectionTest : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& line) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << line << '\n';
  }
  void put_device(const std::string& name, std::uint64_t device_cap_flags_ex) {
    put("sys/class/infiniband/" + name + "/node_type", "1: CA");
    flags_[name] = device_cap_flags_ex;
  }
  Detection find() const {
    return detect(root_,
                  [this](const std::string& device) -> tl::expected<DeviceFeatures, std::string> {
                    const auto flags = flags_.find(device);
                    if (flags == flags_.end()) return tl::unexpected("cannot open " + device);
                    return features_of_flags(flags->second);
                  });
  }
  const test::TemporaryDirectory directory_{fs::temp_directory_path(), "detection"};
  const fs::path root_ = directory_.path();
  std::map<std::string, std::uint64_t> flags_;  // of the devices that can be asked
};

constexpr std::uint64_t kFlush = 1ULL << 38;
constexpr std::uint64_t kFlushPersistence = 1ULL << 39;
constexpr std::uint64_t kAtomicWrite = 1ULL << 40;
constexpr std::uint64_t kOther = ~(kFlush | kFlushPersistence | kAtomicWrite);

TEST_F(DetectionTest, OfAMachineWithoutAnything) {
  const Detection found = find();
  EXPECT_FALSE(found.domain.value);
  EXPECT_EQ(found.domain.reason,
            "there is no region of persistent memory (/sys/bus/nd/devices/region*)");
  EXPECT_FALSE(found.transport.value);
  EXPECT_EQ(found.transport.reason, "there is no RDMA device (/sys/class/infiniband)");
  EXPECT_EQ(found.device_dax.value, false);
  EXPECT_EQ(found.file_system_dax.value, false);
  EXPECT_EQ(found.file_system_dax.reason,
            "there is no block device of persistent memory (/sys/block/pmem*)");
  EXPECT_FALSE(found.ddio.value);
  for (const auto& feature : {found.flush, found.flush_persistence, found.atomic_write}) {
    EXPECT_FALSE(feature.value);
    EXPECT_EQ(feature.reason, "there is no RDMA device (/sys/class/infiniband)");
  }
}

TEST_F(DetectionTest, OfDomainsTransportsAndDax) {
  put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  put("sys/class/infiniband/mlx5_0/node_type", "1: CA");
  put("sys/bus/dax/devices/dax0.0/size", "1");
  const Detection found = find();
  EXPECT_EQ(found.domain.value, pmem::PersistenceDomain::dmp);
  EXPECT_EQ(found.domain.reason, "region0 says memory_controller");
  EXPECT_EQ(found.transport.value, pmem::Transport::infiniband);
  EXPECT_EQ(found.device_dax.value, true);
}

TEST_F(DetectionTest, OfCachesThatPersistAndIwarp) {
  put("sys/bus/nd/devices/region0/persistence_domain", "cpu_cache");
  put("sys/class/infiniband/cxgb4_0/node_type", "4: RNIC");
  const Detection found = find();
  EXPECT_EQ(found.domain.value, pmem::PersistenceDomain::mhp);
  EXPECT_EQ(found.transport.value, pmem::Transport::iwarp);
  EXPECT_EQ(found.transport.reason, "cxgb4_0 is a RNIC");
}

TEST_F(DetectionTest, WhatDiffersOrIsStrangeIsNotKnown) {
  put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  put("sys/bus/nd/devices/region1/persistence_domain", "cpu_cache");
  put("sys/class/infiniband/x/node_type", "9: something");
  const Detection found = find();
  EXPECT_FALSE(found.domain.value);
  EXPECT_EQ(found.domain.reason, "region0 says memory_controller, but region1 says cpu_cache");
  EXPECT_FALSE(found.transport.value);
}

// Nothing that a device's flags say of the three is lost or mixed up, whatever else they say.
TEST_F(DetectionTest, OfWhatADeviceHas) {
  for (const std::uint64_t others : {std::uint64_t{1}, kOther}) {
    for (const bool flush : {false, true}) {
      for (const bool persistence : {false, true}) {
        for (const bool atomic_write : {false, true}) {
          put_device("mlx5_0", others | (flush ? kFlush : 0) |
                                   (persistence ? kFlushPersistence : 0) |
                                   (atomic_write ? kAtomicWrite : 0));
          const Detection found = find();
          EXPECT_EQ(found.flush.value, flush);
          EXPECT_EQ(found.flush.reason, flush ? "mlx5_0 has FLUSH" : "mlx5_0 lacks FLUSH");
          EXPECT_EQ(found.flush_persistence.value, persistence);
          EXPECT_EQ(found.atomic_write.value, atomic_write);
          const DeviceFeatures usable = usable_features(found);
          EXPECT_EQ(usable.flush, flush);
          EXPECT_EQ(usable.flush_persistence, persistence);
          EXPECT_EQ(usable.atomic_write, atomic_write);
        }
      }
    }
  }
}

TEST_F(DetectionTest, OfWhatDevicesDisagreeAbout) {
  put_device("mlx5_0", kOther | kFlush | kAtomicWrite);
  put_device("rxe0", kOther | kFlush | kFlushPersistence);
  const Detection found = find();
  EXPECT_EQ(found.flush.value, true);
  EXPECT_FALSE(found.flush_persistence.value);
  EXPECT_EQ(found.flush_persistence.reason,
            "mlx5_0 lacks FLUSH for persistence, but rxe0 has FLUSH for persistence");
  EXPECT_FALSE(found.atomic_write.value);
  EXPECT_EQ(found.atomic_write.reason, "mlx5_0 has ATOMIC WRITE, but rxe0 lacks ATOMIC WRITE");
  const DeviceFeatures usable = usable_features(found);
  EXPECT_TRUE(usable.flush);
  EXPECT_FALSE(usable.flush_persistence);
  EXPECT_FALSE(usable.atomic_write);
}

// One that does not answer, before or after one that does.
TEST_F(DetectionTest, OfDevicesThatDoNotTell) {
  for (const std::string silent : {"a", "z"}) {
    put_device("mlx5_0", ~0ULL);
    put("sys/class/infiniband/" + silent + "/node_type", "1: CA");
    const Detection found = find();
    for (const auto& feature : {found.flush, found.flush_persistence, found.atomic_write}) {
      EXPECT_FALSE(feature.value);
      EXPECT_EQ(feature.reason, "cannot open " + silent);
    }
    const DeviceFeatures usable = usable_features(found);
    EXPECT_FALSE(usable.flush || usable.flush_persistence || usable.atomic_write);
    fs::remove_all(root_ / "sys/class/infiniband" / silent);
  }
}

TEST_F(DetectionTest, WithoutADeviceTheDefaultsHold) {
  const DeviceFeatures usable = usable_features(find());
  EXPECT_EQ(usable.flush, DeviceFeatures{}.flush);
  EXPECT_EQ(usable.flush_persistence, DeviceFeatures{}.flush_persistence);
  EXPECT_EQ(usable.atomic_write, DeviceFeatures{}.atomic_write);
}

// libibverbs itself; there is no such device on any machine.
TEST(RdmaDevice, ThatIsNotThereDoesNotTell) {
  const auto features = query_rdma_device("perdura-none");
  ASSERT_FALSE(features);
  EXPECT_NE(features.error().find("perdura-none"), std::string::npos) << features.error();
}

struct MountCase {
  const char* mount;  // a line of /proc/mounts
  std::optional<bool> value;
  const char* reason;
};

TEST_F(DetectionTest, OfFileSystemsOnPersistentMemory) {
  const char* const alone = "pmem1 can, and has no mounted file system";
  const MountCase cases[] = {
      {"/dev/pmem1 /pm ext4 rw,dax=always 0 0", true, "pmem1 is mounted at /pm with dax=always"},
      {"/dev/pmem1 /pm xfs rw,relatime,dax 0 0", true, "pmem1 is mounted at /pm with dax"},
      {"/dev/pmem1p2 /pm ext4 dax=always,rw 0 0", true, "pmem1 is mounted at /pm with dax=always"},
      {"/dev/pmem1 /pm ext2 rw,dax 0 0", true, "pmem1 is mounted at /pm with dax"},
      {"/dev/pmem1 /pm xfs rw,dax=never 0 0", false, "pmem1 is mounted at /pm with dax=never"},
      {"/dev/pmem1 /pm ext2 rw 0 0", false, "pmem1 is mounted at /pm without dax"},
      {"/dev/pmem1 /pm ext2 rw,nodax,daxx 0 0", false, "pmem1 is mounted at /pm without dax"},
      {"/dev/pmem1 /pm ext4 rw,dax=inode 0 0", std::nullopt,
       "pmem1 is mounted at /pm with dax=inode: each file has its own attribute"},
      {"/dev/pmem1 /pm xfs rw 0 0", std::nullopt,
       "pmem1 is mounted at /pm with dax=inode: each file has its own attribute"},
      {"/dev/pmem10 /pm ext4 rw,dax=always 0 0", false, alone},
      {"/dev/pmem1s /pm ext4 rw,dax=always 0 0", false, alone},
      {"/dev/pmem1px /pm ext4 rw,dax=always 0 0", false, alone},
      {"/dev/sda1 /pm ext4 rw,dax=always 0 0", false, alone},
      {"/dev/pmem1 /pm", false, alone},
      {"", false, alone},
  };
  put("sys/block/pmem1/queue/dax", "1");
  for (const MountCase& each : cases) {
    put("proc/mounts", each.mount);
    const Detection found = find();
    EXPECT_EQ(found.file_system_dax.value, each.value) << each.mount;
    EXPECT_EQ(found.file_system_dax.reason, each.reason) << each.mount;
    EXPECT_EQ(found.device_dax.value, false);
  }
}

TEST_F(DetectionTest, OneFileSystemWithDaxIsEnough) {
  put("sys/block/pmem0/queue/dax", "0");
  put("sys/block/pmem1/queue/dax", "1");
  put("sys/block/pmem2/queue/dax", "1");
  put("proc/mounts", "/dev/pmem0 /a ext4 rw,dax=always 0 0");
  EXPECT_EQ(find().file_system_dax.value, false);
  EXPECT_EQ(find().file_system_dax.reason, "pmem0 cannot (/sys/block/pmem0/queue/dax)");
  put("proc/mounts", "/dev/pmem1 /b ext4 rw,dax=never 0 0\n/dev/pmem2 /c ext4 rw 0 0");
  EXPECT_FALSE(find().file_system_dax.value);
  EXPECT_EQ(find().file_system_dax.reason,
            "pmem2 is mounted at /c with dax=inode: each file has its own attribute");
  put("proc/mounts", "/dev/pmem1 /b ext4 rw 0 0\n/dev/pmem2 /c ext4 rw,dax=always 0 0");
  EXPECT_EQ(find().file_system_dax.value, true);
  EXPECT_EQ(find().file_system_dax.reason, "pmem2 is mounted at /c with dax=always");
}

}  // namespace
}  // namespace perdura::persistence
