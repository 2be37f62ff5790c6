// What Linux tells, from trees like those below /sys and /proc, and devices that are not there.
#include "methods/detection.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>

#include "tests/support/machine_tree.h"
#include "tests/support/temporary_directory.h"

namespace perdura::methods {
namespace {

namespace fs = std::filesystem;

class DetectionTest : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& line) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << line << '\n';
  }
  // Any Linux has some buses.
  void show_sysfs() { put("sys/bus/pci/drivers_autoprobe", "1"); }
  // A DAX device in a folder below /sys/devices, bound to a driver.
  void put_dax(const std::string& name, const std::string& parent, const std::string& driver) {
    const std::string folder = "sys/devices/" + parent + "/" + name;
    put(folder + "/size", "68719476736");
    fs::create_directories(root_ / "sys/bus/dax/drivers" / driver);
    fs::create_directory_symlink(root_ / "sys/bus/dax/drivers" / driver, root_ / folder / "driver");
    fs::create_directories(root_ / "sys/bus/dax/devices");
    fs::create_directory_symlink(root_ / folder, root_ / "sys/bus/dax/devices" / name);
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
  show_sysfs();
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

// A container may show nothing below /sys. Then nothing is known to be missing.
TEST_F(DetectionTest, WithoutSysfsNothingIsKnown) {
  const Detection found = find();
  const auto expect_unknown = [](const auto& property) {
    EXPECT_FALSE(property.value) << property.reason;
    EXPECT_TRUE(property.reason.starts_with("there is no /sys/bus")) << property.reason;
  };
  expect_unknown(found.domain);
  expect_unknown(found.ddio);
  expect_unknown(found.transport);
  expect_unknown(found.flush);
  expect_unknown(found.device_dax);
  expect_unknown(found.file_system_dax);
}

// Every way in which two or three regions may say one of two domains or nothing, and the firmware
// likewise: the domain is known only if every region says the same, and the firmware nothing else.
TEST_F(DetectionTest, OneRegionThatIsSilentMakesTheDomainUnknown) {
  enum class Says { dmp, mhp, missing, empty, strange };
  constexpr std::array kAll{Says::dmp, Says::mhp, Says::missing, Says::empty, Says::strange};
  std::array<std::optional<Says>, 3> written;  // only what changes is written
  const auto put_region = [&](int number, Says says) {
    if (written.at(number) == says) return;
    written.at(number) = says;
    const std::string folder = "sys/bus/nd/devices/region" + std::to_string(number);
    put(folder + "/size", "17179869184");
    const std::string file = folder + "/persistence_domain";
    fs::remove(root_ / file);
    if (says == Says::dmp) put(file, "memory_controller");
    if (says == Says::mhp) put(file, "cpu_cache");
    if (says == Says::empty) put(file, "");
    if (says == Says::strange) put(file, "somewhere");
  };
  const fs::path nfit = root_ / "sys/firmware/acpi/tables/NFIT";
  fs::create_directories(nfit.parent_path());
  const auto is_domain = [](Says says) { return says == Says::dmp || says == Says::mhp; };
  int checked = 0;
  for (const Says firmware : {Says::missing, Says::dmp, Says::mhp}) {
    if (firmware != Says::missing) {
      std::ofstream(nfit, std::ios::binary)
          << test::nfit({test::nfit_range(4 * GiB, GiB),
                         test::nfit_capabilities(1, firmware == Says::mhp ? 3 : 2)});
    }
    for (const auto& [regions, cases] : {std::pair{1, 5}, std::pair{2, 25}, std::pair{3, 125}}) {
      for (int i = 0; i < cases; ++i, ++checked) {
        const std::array says{kAll.at(i % 5), kAll.at(i / 5 % 5), kAll.at(i / 25)};
        bool known = firmware == Says::missing || firmware == says[0];
        for (int region = 0; region < regions; ++region) {
          put_region(region, says.at(region));
          known = known && is_domain(says.at(region)) && says.at(region) == says[0];
        }
        const Detection found = find();
        ASSERT_EQ(found.domain.value.has_value(), known)
            << regions << " regions, case " << i << ": " << found.domain.reason;
        if (known) {
          EXPECT_EQ(*found.domain.value == pmem::PersistenceDomain::mhp, says[0] == Says::mhp);
        }
        EXPECT_EQ(found.domain.reason.find("there is no region"), std::string::npos);
      }
    }
    fs::remove_all(root_ / "sys/bus/nd");
    written = {};
  }
  EXPECT_EQ(checked, (5 + 25 + 125) * 3);
}

TEST_F(DetectionTest, ARegionThatDoesNotSayIsThere) {
  put("sys/bus/nd/devices/region0/size", "17179869184");
  EXPECT_EQ(find().domain.reason, "region0 does not say: it has no persistence_domain");
  put("sys/bus/nd/devices/region0/persistence_domain", "");
  EXPECT_EQ(find().domain.reason, "region0 does not say: its persistence_domain is empty");
  fs::remove(root_ / "sys/bus/nd/devices/region0/persistence_domain");
  fs::create_directory(root_ / "sys/bus/nd/devices/region0/persistence_domain");
  EXPECT_EQ(find().domain.reason, "region0/persistence_domain cannot be read: Is a directory");
}

// Regions of volatile memory, and those that are reached by blocks only, have no domain to say.
TEST_F(DetectionTest, RegionsOfOtherKindsAreNotAsked) {
  put("sys/bus/nd/devices/region0/persistence_domain", "cpu_cache");
  put("sys/bus/nd/devices/region1/devtype", "nd_volatile");
  put("sys/bus/nd/devices/region2/devtype", "nd_blk");
  EXPECT_EQ(find().domain.value, pmem::PersistenceDomain::mhp);
}

struct DaxCase {
  const char* parent;  // below /sys/devices
  const char* provider;
  const char* driver;
  std::optional<bool> value;
  const char* reason;
};

TEST_F(DetectionTest, OnlyDevicesOfPersistentMemoryAreDeviceDax) {
  const DaxCase cases[] = {
      {"LNXSYSTM:00/LNXSYBUS:00/ACPI0012:00/ndbus0/region0/dax0.0", "ACPI.NFIT", "device_dax", true,
       "dax0.0 is on ndbus0 of ACPI.NFIT"},
      {"LNXSYSTM:00/LNXSYBUS:00/ACPI0012:00/ndbus0/region0/dax0.0", "ACPI.NFIT", "kmem", false,
       "dax0.0 is used as RAM by the kernel (driver kmem)"},
      {"platform/hmem.0", nullptr, "device_dax", false,
       "dax0.0 is memory of hmem.0, which is volatile"},
      {"platform/hmem.0", nullptr, "kmem", false,
       "dax0.0 is used as RAM by the kernel (driver kmem)"},
      {"platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0", nullptr, "device_dax", false,
       "dax0.0 is memory of the CXL region region0, which is volatile"},
      {"platform/ACPI0017:00/root0/nvdimm-bridge0/ndbus1/region1/dax1.0", "CXL", "device_dax", true,
       "dax0.0 is on ndbus1 of CXL"},
      {"platform/e820_pmem/ndbus0/region0", "e820", "device_dax", std::nullopt,
       "dax0.0 is on ndbus0 of e820: an NVDIMM of an old firmware, or RAM set aside by memmap="},
      {"pci0000:00/0000:00:04.0/virtio1/ndbus0/region0", "virtio1", "device_dax", false,
       "dax0.0 is on ndbus0 of virtio1: only the host can make it durable"},
      {"platform/something", nullptr, "device_dax", std::nullopt,
       "nothing says whether the memory of dax0.0 is persistent"},
  };
  for (const DaxCase& each : cases) {
    fs::remove_all(root_ / "sys");
    show_sysfs();
    put_dax("dax0.0", each.parent, each.driver);
    const std::string parent = each.parent;
    if (each.provider != nullptr) {
      const std::size_t bus = parent.find("ndbus");
      put("sys/devices/" + parent.substr(0, parent.find('/', bus)) + "/provider", each.provider);
    }
    const Detection found = find();
    EXPECT_EQ(found.device_dax.value, each.value) << each.parent;
    EXPECT_EQ(found.device_dax.reason, each.reason) << each.parent;
  }
  // A device of persistent memory beside one that is not.
  put_dax("dax1.0", "platform/x/ndbus3/region0", "device_dax");
  EXPECT_EQ(find().device_dax.value, true);
  EXPECT_EQ(find().device_dax.reason, "dax1.0 is on ndbus3");
}

// In a copy of another machine's /sys links may have become files.
TEST_F(DetectionTest, ADaxDeviceWhoseFolderIsNotShownIsNotKnown) {
  put("sys/bus/dax/devices/dax0.0", "../../../devices/platform/hmem.0/dax0.0");
  EXPECT_FALSE(find().device_dax.value);
}

TEST_F(DetectionTest, OfDomainsTransportsAndDax) {
  put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  put("sys/class/infiniband/mlx5_0/node_type", "1: CA");
  put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet");
  put_dax("dax0.0", "ndbus0/region0/dax0.0", "device_dax");
  const Detection found = find();
  EXPECT_EQ(found.domain.value, pmem::PersistenceDomain::dmp);
  EXPECT_EQ(found.domain.reason, "region0 says memory_controller");
  EXPECT_EQ(found.transport.value, pmem::Transport::infiniband);
  EXPECT_EQ(found.transport.reason, "mlx5_0 is a CA on Ethernet");
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
  show_sysfs();
  put("sys/block/pmem1/queue/dax", "1");
  EXPECT_FALSE(find().file_system_dax.value) << "/proc/mounts is not there";
  for (const MountCase& each : cases) {
    put("proc/mounts", each.mount);
    const Detection found = find();
    EXPECT_EQ(found.file_system_dax.value, each.value) << each.mount;
    EXPECT_EQ(found.file_system_dax.reason, each.reason) << each.mount;
    EXPECT_EQ(found.device_dax.value, false);
  }
}

TEST_F(DetectionTest, ABlockDeviceThatDoesNotSayMayHaveDax) {
  put("sys/block/pmem0/size", "1");
  EXPECT_FALSE(find().file_system_dax.value);
  EXPECT_EQ(find().file_system_dax.reason,
            "/sys/block/pmem0/queue/dax does not say whether pmem0 can");
  put("sys/block/pmem0/queue/dax", "1");
  put("sys/block/pmem0/holders/dm-3/size", "1");
  put("proc/mounts", "/dev/mapper/striped /pm xfs rw,dax=always 0 0");
  EXPECT_FALSE(find().file_system_dax.value);
  EXPECT_EQ(find().file_system_dax.reason, "pmem0 can, and dm-3 stands on it");
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
}  // namespace perdura::methods
