// What a doctor says of machines that are not there.
#include "bench/doctor/doctor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "platform/base/json.h"
#include "tests/support/machine_tree.h"

namespace perdura::bench {
namespace {

using methods::DeviceFeatures;
using perdura::test::MachineTree;
using perdura::test::nfit_capabilities;
using perdura::test::nfit_range;

Host host_of(const MachineTree& machine, std::optional<DeviceFeatures> features = {}) {
  Host host;
  host.root = machine.root();
  host.features_of =
      [features](const std::string& device) -> tl::expected<DeviceFeatures, std::string> {
    if (!features) return tl::unexpected("cannot open " + device);
    return *features;
  };
  return host;
}

const Finding& find(const Diagnosis& diagnosis, std::string_view name) {
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [&](const Finding& finding) { return finding.name == name; });
  if (found == diagnosis.findings.end())
    throw std::runtime_error(fmt::format("no finding {}", name));
  return *found;
}

// Each property has its evidence, and what is not known says how to find out.
void expect_explained(const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_FALSE(finding.evidence.empty() && finding.value.empty()) << finding.name;
    if (!finding.known()) {
      EXPECT_FALSE(finding.evidence.empty()) << finding.name;
    }
  }
  for (const char* name : {"persistence domain", "DDIO", "NFIT", "SRAT", "HMAT", "ndctl"}) {
    const Finding& finding = find(diagnosis, name);
    EXPECT_TRUE(finding.known() || !finding.how.empty()) << name;
  }
}

// The descriptor that others read says what the diagnosis says, whatever else stands beside it.
void expect_same_in_json(const Diagnosis& diagnosis) {
  const std::string json = as_json(diagnosis);
  const auto read = methods::responder_from_json(json);
  EXPECT_EQ(read.domain.value, diagnosis.responder.domain.value);
  EXPECT_EQ(read.ddio.value, diagnosis.responder.ddio.value);
  EXPECT_EQ(read.transport.value, diagnosis.responder.transport.value);
  EXPECT_EQ(read.flush.value, diagnosis.responder.flush.value);
  const auto object = Json::parse(json);
  EXPECT_EQ(object["findings"].size(), diagnosis.findings.size());
  EXPECT_EQ(object["advise"], diagnosis.advise);
}

// An empty /sys, as some containers have, says nothing: neither that there is no device nor that
// there is one.
TEST(Doctor, OfAContainerWithoutSysfs) {
  const MachineTree machine;
  const Diagnosis diagnosis = examine(host_of(machine));
  expect_explained(diagnosis);
  expect_same_in_json(diagnosis);
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_FALSE(finding.known()) << finding.name << ": " << finding.value;
  }
  EXPECT_EQ(diagnosis.kind,
            "This host is a responder of any of 12 kinds out of 12: persistence domain unknown, "
            "DDIO unknown, transport unknown; it is not sure which. It is not known whether it has "
            "persistent memory.");
}

TEST(Doctor, OfAMachineWithoutAnything) {
  MachineTree machine;
  machine.put("sys/bus/pci/drivers_autoprobe", "1");
  machine.put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0");
  const Diagnosis diagnosis = examine(host_of(machine));
  expect_explained(diagnosis);
  expect_same_in_json(diagnosis);
  EXPECT_FALSE(find(diagnosis, "persistence domain").known());
  EXPECT_EQ(find(diagnosis, "devices").value, "0");
  EXPECT_EQ(find(diagnosis, "NVDIMMs").value, "0");
  EXPECT_EQ(find(diagnosis, "CXL memory").value, "0");
  EXPECT_EQ(find(diagnosis, "dirty shutdowns").value, "none");
  EXPECT_EQ(find(diagnosis, "device DAX").value, "no");
  EXPECT_EQ(find(diagnosis, "huge pages").value, "none");
  EXPECT_EQ(diagnosis.advise, "perdura advise") << "nothing is known";
  EXPECT_TRUE(diagnosis.kind.starts_with("This host is no responder")) << diagnosis.kind;
}

// NVDIMMs behind ADR, at the other NUMA node than the device.
TEST(Doctor, OfNvdimmsWithAdr) {
  MachineTree machine;
  machine.put("sys/bus/nd/devices/nmem0/id", "x");
  machine.put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  machine.put("sys/bus/nd/devices/region0/size", std::to_string(128 * GiB));
  machine.put("sys/bus/nd/devices/region0/numa_node", "1");
  machine.put_bytes("sys/firmware/acpi/tables/NFIT",
                    test::nfit({nfit_range(4 * GiB, GiB), nfit_capabilities(1, 2)}));
  machine.put_bytes("sys/firmware/acpi/tables/SRAT", test::srat(GiB, 5));
  machine.put_bytes("sys/firmware/acpi/tables/HMAT", test::hmat(80, 305));
  machine.put("sys/devices/system/node/node0/distance", "10 21");
  machine.put("sys/devices/system/node/node1/distance", "21 10");
  machine.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  machine.put("sys/devices/system/cpu/smt/active", "1");
  machine.put("proc/self/limits", "Max locked memory         65536  65536  bytes");
  machine.put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512");
  machine.put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "12");
  machine.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  machine.put_rdma_device("mlx5_0", true, true);
  std::string msr(0xC8B, '\0');
  msr += std::string("\x00\x06\x00\x00\x00\x00\x00\x00", 8);
  machine.put_bytes("dev/cpu/0/msr", msr);
  Host host = host_of(machine, DeviceFeatures{.flush = true, .atomic_write = false});
  host.ndctl_regions = [] {
    return R"([{"dev": "region0", "persistence_domain": "memory_controller"}])";
  };
  const Diagnosis diagnosis = examine(host);
  expect_explained(diagnosis);
  expect_same_in_json(diagnosis);
  EXPECT_EQ(diagnosis.responder.domain.value, pmem::PersistenceDomain::dmp);
  EXPECT_EQ(find(diagnosis, "persistence domain").evidence, "region0 says memory_controller");
  EXPECT_EQ(find(diagnosis, "NVDIMMs").value, "1");
  EXPECT_NE(find(diagnosis, "NVDIMMs").evidence.find("region0 of 128 GiB at NUMA node 1"),
            std::string::npos);
  EXPECT_NE(
      find(diagnosis, "NFIT").evidence.find("caches are flushed: no; memory controllers: yes"),
      std::string::npos);
  EXPECT_EQ(find(diagnosis, "SRAT").value, "persistent memory");
  EXPECT_NE(find(diagnosis, "HMAT").evidence.find("0 to 2 305 ns"), std::string::npos);
  EXPECT_EQ(find(diagnosis, "ndctl").evidence, "region0 says memory_controller");
  EXPECT_EQ(find(diagnosis, "DDIO").value, "on");
  EXPECT_EQ(find(diagnosis, "cache ways of DDIO").value, "2 (0x600)");
  EXPECT_EQ(find(diagnosis, "mlx5_0: relaxed ordering").value, "on");
  EXPECT_EQ(find(diagnosis, "mlx5_0: FLUSH").value, "yes");
  EXPECT_EQ(find(diagnosis, "mlx5_0: ATOMIC WRITE").value, "no");
  EXPECT_EQ(find(diagnosis, "mlx5_0: NUMA distance to persistent memory").value, "21");
  EXPECT_FALSE(find(diagnosis, "mlx5_0: NUMA distance to persistent memory").how.empty());
  EXPECT_EQ(find(diagnosis, "huge pages").value, "512 of 2048kB, 12 free");
  EXPECT_EQ(find(diagnosis, "transparent huge pages").value, "madvise");
  EXPECT_EQ(find(diagnosis, "memlock").value, "65536 bytes");
  EXPECT_EQ(find(diagnosis, "CPU frequency governor").value, "powersave");
  EXPECT_EQ(find(diagnosis, "SMT").value, "on");
  EXPECT_EQ(diagnosis.advise,
            "perdura advise --domain dmp --ddio on --transport ib --flush --no-flush-persistence "
            "--no-atomic-write");
}

// One region says cpu_cache, the other nothing: the advice must be right for both.
TEST(Doctor, OfTwoRegionsOfWhichOneIsSilent) {
  MachineTree machine;
  machine.put("sys/bus/nd/devices/region0/persistence_domain", "cpu_cache");
  machine.put("sys/bus/nd/devices/region1/size", "17179869184");
  Host host = host_of(machine);
  host.ndctl_regions = [] {
    return R"([{"dev": "region0", "persistence_domain": "cpu_cache"}, {"dev": "region1"}])";
  };
  const Diagnosis diagnosis = examine(host);
  expect_explained(diagnosis);
  expect_same_in_json(diagnosis);
  EXPECT_FALSE(diagnosis.responder.domain.value);
  EXPECT_EQ(find(diagnosis, "persistence domain").evidence,
            "region1 does not say: it has no persistence_domain");
  EXPECT_EQ(find(diagnosis, "ndctl").evidence, "region0 says cpu_cache, region1 does not say");
  EXPECT_EQ(diagnosis.advise, "perdura advise");
}

struct ShutdownCase {
  const char* file;  // below /sys/bus
  const char* line;
  const char* value;
};

TEST(Doctor, DirtyShutdownsAreCounted) {
  const ShutdownCase cases[] = {
      {"nd/devices/nmem0/nfit/dirty_shutdown", "0", "nmem0 0"},
      {"nd/devices/nmem0/nfit/dirty_shutdown", "3", "nmem0 3"},
      {"nd/devices/nmem1/cxl/dirty_shutdown", "2", "nmem1 2"},
      {"nd/devices/nmem2/papr/dirty_shutdown", "1", "nmem2 1"},
      {"nd/devices/nmem0/nfit/dirty_shutdown", "", "unknown"},
      {"nd/devices/nmem0/nfit/id", "x", "unknown"},
      {"cxl/devices/mem0/pmem/size", "0x4000000000", "unknown"},
      {"cxl/devices/mem0/pmem/size", "0x0", "none"},
  };
  for (const ShutdownCase& each : cases) {
    MachineTree machine;
    machine.put("sys/bus/" + std::string(each.file), each.line);
    const Diagnosis diagnosis = examine(host_of(machine));
    const Finding& finding = find(diagnosis, "dirty shutdowns");
    EXPECT_EQ(finding.value, each.value) << each.file;
    EXPECT_EQ(finding.how.starts_with("each may have lost"),
              finding.known() && std::string("123").find(each.line) != std::string::npos)
        << each.file;
  }
}

TEST(Doctor, ADimmThatIsNotArmedSaysSo) {
  MachineTree machine;
  machine.put("sys/bus/nd/devices/nmem0/nfit/flags", "not_armed");
  const Finding finding = find(examine(host_of(machine)), "NVDIMMs");
  EXPECT_NE(finding.evidence.find("nmem0 reports not_armed"), std::string::npos);
  EXPECT_NE(finding.how.find("ndctl list -DH"), std::string::npos);
}

TEST(Doctor, LinkLayersTellInfiniBandFromRoce) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"InfiniBand"}, "InfiniBand"},
      {{"Ethernet"}, "RoCE"},
      {{"Ethernet", "Ethernet"}, "RoCE"},
      {{"InfiniBand", "Ethernet"}, "InfiniBand and RoCE"},
      {{"Ethernet", ""}, "InfiniBand or RoCE"},
      {{""}, "InfiniBand or RoCE"},
      {{}, "InfiniBand or RoCE"},
  };
  for (const auto& [layers, transport] : cases) {
    MachineTree machine;
    machine.put("sys/class/infiniband/mlx5_0/node_type", "1: CA");
    int port = 0;
    for (const std::string& layer : layers) {
      machine.put("sys/class/infiniband/mlx5_0/ports/" + std::to_string(++port) + "/link_layer",
                  layer);
    }
    EXPECT_EQ(find(examine(host_of(machine)), "transport").value, transport);
  }
}

// Of CPUs of which one does not say, the governor is not known.
TEST(Doctor, SilentCpusAreNotOverlooked) {
  MachineTree machine;
  const std::string cpus = "sys/devices/system/cpu/";
  machine.put(cpus + "cpu0/cpufreq/scaling_governor", "performance");
  machine.put(cpus + "cpu1/online", "0");
  machine.put(cpus + "cpufreq/boost", "1");
  EXPECT_EQ(find(examine(host_of(machine)), "CPU frequency governor").value, "performance");
  machine.put(cpus + "cpu1/online", "1");
  EXPECT_FALSE(find(examine(host_of(machine)), "CPU frequency governor").known());
}

TEST(Doctor, OfCachesThatPersist) {
  MachineTree machine;
  machine.put("sys/bus/nd/devices/region0/persistence_domain", "cpu_cache");
  machine.put_bytes("sys/firmware/acpi/tables/NFIT",
                    test::nfit({nfit_range(4 * GiB, GiB), nfit_capabilities(1, 3)}));
  machine.put("sys/devices/ndbus0/region0/dax0.0/dax0.0/size", "1");
  std::filesystem::create_directories(machine.root() / "sys/bus/dax/devices");
  std::filesystem::create_directory_symlink("../../../devices/ndbus0/region0/dax0.0/dax0.0",
                                            machine.root() / "sys/bus/dax/devices/dax0.0");
  machine.put("proc/self/limits", "Max locked memory         unlimited  unlimited  bytes");
  machine.put_rdma_device("mlx5_0", false, false);
  const Diagnosis diagnosis = examine(host_of(machine));
  expect_explained(diagnosis);
  expect_same_in_json(diagnosis);
  EXPECT_EQ(diagnosis.responder.domain.value, pmem::PersistenceDomain::mhp);
  EXPECT_EQ(find(diagnosis, "device DAX").value, "yes");
  EXPECT_EQ(find(diagnosis, "memlock").value, "unlimited");
  EXPECT_TRUE(find(diagnosis, "memlock").how.empty());
  EXPECT_EQ(diagnosis.kind,
            "This host is a responder of this kind: persistence domain mhp, DDIO off, transport "
            "ib; that is as sure as Linux and the firmware are, which know nothing of batteries "
            "(wsp).");
  EXPECT_FALSE(find(diagnosis, "mlx5_0: FLUSH").known());
  EXPECT_EQ(diagnosis.advise, "perdura advise --domain mhp --ddio off --transport ib")
      << "what the device does not tell is left to the chooser";
}

TEST(Doctor, OfCxlMemory) {
  MachineTree machine;
  machine.put("sys/bus/cxl/devices/mem0/pmem/size", "0x4000000000");
  machine.put("sys/bus/cxl/devices/mem0/ram/size", "0x0");
  machine.put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  const Diagnosis diagnosis = examine(host_of(machine));
  expect_explained(diagnosis);
  EXPECT_EQ(find(diagnosis, "CXL memory").value, "1");
  EXPECT_NE(find(diagnosis, "CXL memory").evidence.find("mem0 with 256 GiB persistent"),
            std::string::npos)
      << find(diagnosis, "CXL memory").evidence;
  EXPECT_EQ(diagnosis.responder.domain.value, pmem::PersistenceDomain::dmp);
}

TEST(Doctor, TextHasEachFindingInItsColumns) {
  MachineTree machine;
  machine.put_rdma_device("mlx5_0", true, true, 64);
  const Diagnosis diagnosis = examine(host_of(machine));
  const std::string text = as_text(diagnosis);
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_NE(text.find("\n  " + finding.name + "  "), std::string::npos) << finding.name;
    EXPECT_NE(text.find(finding.evidence), std::string::npos) << finding.evidence;
    EXPECT_NE(text.find(finding.how), std::string::npos) << finding.how;
  }
  EXPECT_NE(text.find("\n  " + diagnosis.advise + "\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n" + diagnosis.kind + "\n")) << "the last line is the result";
}

}  // namespace
}  // namespace perdura::bench
