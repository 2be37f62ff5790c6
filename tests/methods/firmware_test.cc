// What tables of the firmware and configuration spaces of devices say, and what they do not.
#include <gtest/gtest.h>

#include "methods/acpi_tables.h"
#include "methods/detection.h"
#include "methods/pci.h"
#include "tests/support/machine_tree.h"

namespace perdura::methods {
namespace {

using perdura::test::MachineTree;
using perdura::test::nfit_capabilities;
using perdura::test::nfit_range;

TEST(AcpiTables, NfitSaysWhatIsFlushedWhenPowerIsLost) {
  const auto nfit = read_nfit(test::nfit({nfit_range(4 * GiB, GiB), nfit_capabilities(1, 3)}));
  ASSERT_TRUE(nfit);
  ASSERT_EQ(nfit->persistent.size(), 1U);
  EXPECT_EQ(nfit->persistent[0].length, GiB);
  EXPECT_EQ(nfit->flushes_caches, true);
  EXPECT_EQ(nfit->flushes_controllers, true);
  const auto adr = read_nfit(test::nfit({nfit_capabilities(1, 2)}));
  EXPECT_EQ(adr->flushes_caches, false);
  EXPECT_EQ(adr->flushes_controllers, true);
  const auto first_bit_alone = read_nfit(test::nfit({nfit_capabilities(0, 2)}));
  EXPECT_FALSE(first_bit_alone->flushes_controllers) << "that bit is not valid";
  EXPECT_FALSE(read_nfit(test::nfit({}))->flushes_caches) << "it says nothing";
}

TEST(AcpiTables, SratAndHmatSayWhereMemoryIsAndHowFar) {
  const auto srat = read_srat(test::srat(GiB, 5));
  ASSERT_EQ(srat->memory.size(), 1U);
  EXPECT_TRUE(srat->memory[0].persistent);
  EXPECT_EQ(srat->memory[0].proximity_domain, 3U);
  EXPECT_EQ(srat->memory[0].length, GiB);
  EXPECT_TRUE(read_srat(test::srat(GiB, 4))->memory.empty()) << "not enabled";
  const auto hmat = read_hmat(test::hmat(80, 305));
  ASSERT_EQ(hmat->latencies.size(), 2U);
  EXPECT_EQ(hmat->latencies[1].target, 2U);
  EXPECT_EQ(hmat->latencies[1].read, Nanoseconds(305));
  EXPECT_EQ(read_hmat(test::hmat(80, 0xFFFF))->latencies.size(), 1U) << "not reachable";
  EXPECT_FALSE(read_hmat(test::hmat(80, 305, 1)));
}

// Whatever is cut off, and whatever byte is changed, no reader reads beyond the end.
TEST(AcpiTables, DamagedOnesAreReadAsFarAsTheyAreWhole) {
  for (const std::string& whole : {test::nfit({nfit_range(4 * GiB, GiB), nfit_capabilities(1, 3)}),
                                   test::srat(GiB, 5), test::hmat(80, 305)}) {
    const auto read_all = [](const std::string& table) {
      read_nfit(table);
      read_srat(table);
      read_hmat(table);
    };
    for (std::size_t i = 0; i < whole.size(); ++i) {
      read_all(whole.substr(0, i));
      for (const char byte : {'\0', '\1', '\x7f', '\xff'}) {
        std::string changed = whole;
        changed[i] = byte;
        read_all(changed);
      }
    }
  }
  EXPECT_FALSE(read_nfit(""));
  EXPECT_FALSE(read_nfit(test::srat(GiB, 5)));
}

Detection find(const MachineTree& machine) {
  return detect(machine.root(),
                [](const std::string& device) { return tl::unexpected("cannot open " + device); });
}

TEST(Firmware, SaysTheDomainWhereLinuxDoesNot) {
  MachineTree machine;
  machine.put_bytes("sys/firmware/acpi/tables/NFIT",
                    test::nfit({nfit_range(4 * GiB, GiB), nfit_capabilities(1, 3)}));
  EXPECT_EQ(find(machine).domain.value, pmem::PersistenceDomain::mhp);
  EXPECT_EQ(find(machine).domain.reason,
            "the firmware (NFIT) says that CPU caches are flushed when power is lost");
  machine.put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  EXPECT_FALSE(find(machine).domain.value) << "one of them is wrong";
  EXPECT_NE(find(machine).domain.reason.find(", but "), std::string::npos);
  machine.put_bytes("sys/firmware/acpi/tables/NFIT",
                    test::nfit({nfit_range(4 * GiB, GiB), nfit_capabilities(1, 2)}));
  EXPECT_EQ(find(machine).domain.value, pmem::PersistenceDomain::dmp);
}

TEST(Pci, ARootPortSaysWhetherItsWritesAllocateInTheCache) {
  for (const bool on : {false, true}) {
    MachineTree machine;
    machine.put_rdma_device("mlx5_0", !on, on);
    const Detection found = find(machine);
    EXPECT_EQ(found.ddio.value, on);
    EXPECT_EQ(found.ddio.reason,
              std::string("mlx5_0: root port 0000:3a:00.0 ") +
                  (on ? "uses allocating writes" : "does not use allocating writes"));
    const auto pci = pci_device_of(machine.root() / "sys/class/infiniband/mlx5_0/device");
    ASSERT_TRUE(pci);
    EXPECT_EQ(relaxed_ordering_of(*pci).value, !on);
  }
}

// The bit of a virtual function means nothing; that of its physical function holds for both.
TEST(Pci, AVirtualFunctionOrdersAsItsPhysicalFunctionDoes) {
  for (const bool on : {false, true}) {
    MachineTree machine;
    machine.put_rdma_device("mlx5_0", on, true);
    const auto physical = pci_device_of(machine.root() / "sys/class/infiniband/mlx5_0/device");
    ASSERT_TRUE(physical);
    const auto port = physical->parent_path();
    const std::string name = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.2";
    machine.put_bytes(name + "/config", test::pci_config(0x15b3, 0x101a, 4096, false));
    std::filesystem::create_directory_symlink("../0000:3b:00.0", machine.root() / name / "physfn");
    const auto found = relaxed_ordering_of(port / "0000:3b:00.2");
    EXPECT_EQ(found.value, on);
    EXPECT_TRUE(
        found.reason.starts_with("0000:3b:00.2 is a virtual function: Device Control of "
                                 "0000:3b:00.0 "))
        << found.reason;
    std::filesystem::remove_all(*physical);
    EXPECT_FALSE(relaxed_ordering_of(port / "0000:3b:00.2").value) << "it is not shown";
  }
}

// A guest is shown a virtual function as a device of its own.
TEST(Pci, InAGuestABitThatIsNotSetSaysNothing) {
  for (const bool on : {false, true}) {
    MachineTree machine;
    machine.put_rdma_device("mlx5_0", on, true);
    const auto device = pci_device_of(machine.root() / "sys/class/infiniband/mlx5_0/device");
    EXPECT_EQ(relaxed_ordering_of(*device, false).value, on);
    EXPECT_EQ(relaxed_ordering_of(*device, true).value, on ? std::optional(true) : std::nullopt);
  }
}

TEST(Pci, WhatMayNotBeReadOrIsNotUnderstoodIsNotKnown) {
  MachineTree few_bytes;
  few_bytes.put_rdma_device("mlx5_0", true, true, 64);
  EXPECT_FALSE(find(few_bytes).ddio.value);
  EXPECT_NE(find(few_bytes).ddio.reason.find("ask as root"), std::string::npos);
  const auto pci = pci_device_of(few_bytes.root() / "sys/class/infiniband/mlx5_0/device");
  EXPECT_FALSE(relaxed_ordering_of(*pci).value);
  MachineTree other_port;
  other_port.put_rdma_device("mlx5_0", true, true, 4096, 0x1234);
  EXPECT_FALSE(find(other_port).ddio.value);
  EXPECT_NE(find(other_port).ddio.reason.find("8086:1234"), std::string::npos);
  MachineTree software;
  software.put("sys/class/infiniband/rxe0/node_type", "1: CA");
  EXPECT_FALSE(find(software).ddio.value);
}

}  // namespace
}  // namespace perdura::methods
