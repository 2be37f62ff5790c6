// What Linux tells, from trees like those below /sys.
#include "systems/persistence/detection.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace perdura::persistence {
namespace {

namespace fs = std::filesystem;

class DetectionTest : public testing::Test {
 protected:
  DetectionTest() {
    std::string name = (fs::temp_directory_path() / "perdura-detection-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~DetectionTest() override { fs::remove_all(root_); }
  void put(const std::string& file, const std::string& line) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << line << '\n';
  }
  fs::path root_;
};

TEST_F(DetectionTest, OfAMachineWithoutAnything) {
  const Detection found = detect(root_);
  EXPECT_FALSE(found.domain.value);
  EXPECT_EQ(found.domain.reason,
            "there is no region of persistent memory (/sys/bus/nd/devices/region*)");
  EXPECT_FALSE(found.transport.value);
  EXPECT_EQ(found.transport.reason, "there is no RDMA device (/sys/class/infiniband)");
  EXPECT_EQ(found.device_dax.value, false);
  EXPECT_FALSE(found.ddio.value);
}

TEST_F(DetectionTest, OfDomainsTransportsAndDax) {
  put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  put("sys/class/infiniband/mlx5_0/node_type", "1: CA");
  put("sys/bus/dax/devices/dax0.0/size", "1");
  const Detection found = detect(root_);
  EXPECT_EQ(found.domain.value, pmem::PersistenceDomain::dmp);
  EXPECT_EQ(found.domain.reason, "region0 says memory_controller");
  EXPECT_EQ(found.transport.value, pmem::Transport::infiniband);
  EXPECT_EQ(found.device_dax.value, true);
}

TEST_F(DetectionTest, OfCachesThatPersistAndIwarp) {
  put("sys/bus/nd/devices/region0/persistence_domain", "cpu_cache");
  put("sys/class/infiniband/cxgb4_0/node_type", "4: RNIC");
  const Detection found = detect(root_);
  EXPECT_EQ(found.domain.value, pmem::PersistenceDomain::mhp);
  EXPECT_EQ(found.transport.value, pmem::Transport::iwarp);
  EXPECT_EQ(found.transport.reason, "cxgb4_0 is a RNIC");
}

TEST_F(DetectionTest, WhatDiffersOrIsStrangeIsNotKnown) {
  put("sys/bus/nd/devices/region0/persistence_domain", "memory_controller");
  put("sys/bus/nd/devices/region1/persistence_domain", "cpu_cache");
  put("sys/class/infiniband/x/node_type", "9: something");
  const Detection found = detect(root_);
  EXPECT_FALSE(found.domain.value);
  EXPECT_EQ(found.domain.reason, "region0 says memory_controller, but region1 says cpu_cache");
  EXPECT_FALSE(found.transport.value);
}

}  // namespace
}  // namespace perdura::persistence
