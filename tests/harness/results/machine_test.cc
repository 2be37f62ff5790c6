// What is told of a machine, from a tree like those below /proc and /sys.
#include "harness/results/machine.h"

#include <gtest/gtest.h>

#include <fstream>

#include "platform/base/json.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

class MachineTest : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void put_host(const std::string& name) {
    put("proc/sys/kernel/hostname", name);
    put("proc/sys/kernel/ostype", "Linux");
    put("proc/sys/kernel/osrelease", "6.1.0");
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmicrocode\t: 0x5\n");
  }
  Json described(std::span<const ResponderProperty> responder = {}) {
    return Json::parse(describe_machine(root_, responder));
  }

  test::TemporaryFolder temporary_;
  const std::filesystem::path& root_ = temporary_.path();
};

TEST_F(MachineTest, TellsHostKernelAndCpu) {
  put_host("storage1");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
  const Json machine = described();
  EXPECT_EQ(machine["host"], "storage1");
  EXPECT_EQ(machine["kernel"], "Linux 6.1.0");
  EXPECT_EQ(machine["cpu"], "A CPU @ 2 GHz");
  EXPECT_EQ(machine["microcode"], "0x5");
  EXPECT_EQ(machine["governor"], "performance");
  EXPECT_GT(machine["usable_cores"].get<int>(), 0);
}

TEST_F(MachineTest, TellsNumaNodesInTheirOrder) {
  for (const std::string node : {"0", "2", "10"}) {
    put("sys/devices/system/node/node" + node + "/cpulist", node + "-99");
    put("sys/devices/system/node/node" + node + "/meminfo", "Node 0 MemTotal:  1000 kB");
    put("sys/devices/system/node/node" + node + "/distance", "10 20 20");
  }
  put("sys/devices/system/node/online", "0,2,10");
  const Json nodes = described()["numa_nodes"];
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(
      nodes[1],
      (Json{
          {"name", "node2"}, {"cpus", "2-99"}, {"memory", "1000 kB"}, {"distances", "10 20 20"}}));
  EXPECT_EQ(nodes[2]["name"], "node10");
}

TEST_F(MachineTest, TellsRdmaDevicesAndTheirFirmware) {
  put("sys/class/infiniband/mlx5_0/fw_ver", "20.31.1014");
  put("sys/class/infiniband/mlx5_0/node_desc", "storage1 mlx5_0");
  put("sys/class/infiniband/mlx5_0/hca_type", "MT4123");
  put("sys/class/infiniband/mlx5_0/device/numa_node", "1");
  put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  put("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)");
  put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
  EXPECT_EQ(described()["rdma_devices"], (Json::array({{{"name", "mlx5_0"},
                                                        {"description", "storage1 mlx5_0"},
                                                        {"firmware", "20.31.1014"},
                                                        {"type", "MT4123"},
                                                        {"numa_node", "1"},
                                                        {"ports",
                                                         {{{"port", "1"},
                                                           {"state", "4: ACTIVE"},
                                                           {"rate", "100 Gb/sec (4X EDR)"},
                                                           {"link_layer", "InfiniBand"}}}}}})));
}

TEST_F(MachineTest, TellsNamespacesOfPersistentMemory) {
  put("sys/bus/nd/devices/namespace0.0/mode", "fsdax");
  put("sys/bus/nd/devices/namespace0.0/size", "135289372672");
  put("sys/bus/nd/devices/region0/size", "1");
  const Json namespaces = described()["pm_namespaces"];
  ASSERT_EQ(namespaces.size(), 1U);
  EXPECT_EQ(namespaces[0]["name"], "namespace0.0");
  EXPECT_EQ(namespaces[0]["mode"], "fsdax");
  EXPECT_EQ(namespaces[0]["size"], "135289372672");
  EXPECT_EQ(namespaces[0]["numa_node"], "unknown");
}

TEST_F(MachineTest, WhatIsNotToldIsUnknown) {
  const Json machine = described();
  for (const auto key : {"host", "cpu", "microcode", "governor"}) {
    EXPECT_EQ(machine[key], "unknown") << key;
  }
  for (const auto key : {"numa_nodes", "rdma_devices", "pm_namespaces"}) {
    EXPECT_EQ(machine[key], Json::array()) << key;
  }
}

TEST_F(MachineTest, KeepsWhyAPropertyOfTheResponderIsNotKnown) {
  const ResponderProperty ddio{"ddio", "unknown", "Linux does not tell"};
  EXPECT_EQ(described({&ddio, 1})["responder"]["ddio"],
            (Json{{"value", "unknown"}, {"reason", "Linux does not tell"}}));
}

TEST_F(MachineTest, EachHostIsToldOnce) {
  put_host("b");
  const std::string b = describe_machine(root_, {});
  put_host("a");
  const std::string a = describe_machine(root_, {});
  EXPECT_EQ(distinct_machines({b, a, b, a, a}), (std::vector<std::string>{b, a}));
  EXPECT_EQ(machine_name(a), "a (A CPU @ 2 GHz, Linux 6.1.0)");
}

}  // namespace
}  // namespace perdura::harness
