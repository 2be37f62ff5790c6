// Stores on several servers: every system, its partitions spread over the nodes.
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/client_server.h"
#include "bench/kv/kv_driver.h"
#include "bench/kv/kv_parameters.h"
#include "bench/ycsb/point_workload.h"
#include "platform/sim/sim_platform.h"
#include "systems/registry/registry.h"

namespace perdura::bench {
namespace {

using kv::KvSystem;
using ycsb::OperationKind;

class Servers : public testing::TestWithParam<std::tuple<std::size_t, NodeId, std::uint64_t>> {
 protected:
  const KvSystem& system() const { return systems::kv_systems()[std::get<0>(GetParam())]; }
  NodeId servers() const { return std::get<1>(GetParam()); }
  std::uint64_t threads() const { return std::get<2>(GetParam()); }

  harness::Point point() const {
    harness::Point point(kv_parameters());
    point.roles = client_server(2, servers());
    point.settings.system.text = std::string(system().name);
    point.settings.set("servers", std::uint64_t{servers()});
    point.settings.set("server_threads", threads());
    point.settings.set("clients", std::uint64_t{4});
    point.settings.set("check_history", true);
    ycsb::WorkloadSpec& spec = own_workload(point).spec;
    spec.record_count = 200;
    spec.operation_count = 2000;
    spec.key_size = 16;
    spec.field_count = 1;
    spec.field_length = static_cast<std::uint32_t>(system().fit_value(64));
    spec.proportions = {};
    spec.proportions[static_cast<std::size_t>(OperationKind::read)] = 0.5;
    spec.proportions[static_cast<std::size_t>(OperationKind::update)] = 0.5;
    return point;
  }
};

INSTANTIATE_TEST_SUITE_P(All, Servers,
                         testing::Combine(testing::Range<std::size_t>(0,
                                                                      systems::kv_systems().size()),
                                          testing::Values(1, 2, 3), testing::Values(1, 2)),
                         [](const auto& test) {
                           std::string name(systems::kv_systems()[std::get<0>(test.param)].name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + std::to_string(std::get<1>(test.param)) + "_with_" +
                                  std::to_string(std::get<2>(test.param));
                         });

TEST_P(Servers, TogetherAreOneStore) {
  const harness::Point point = this->point();
  sim::SimPlatform platform(sim::load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml"),
                            point.roles.node_count());
  const KvDriver driver(systems::kv_systems());
  harness::Measurement measurement = driver.run(platform, point);
  driver.conclude(point, measurement);
  EXPECT_EQ(measurement.verdict, harness::Verdict::valid) << measurement.reason;
  EXPECT_EQ(measurement.operations(), 2000U);
  EXPECT_EQ(measurement.operations_checked, 200U + 2000U);
  pmem::Writes of_servers;
  for (NodeId node = 0; node < servers(); ++node) {
    const pmem::Writes writes = platform.local_node(node)->pm_writes();
    // Keys are spread by a hash: of 2,200 changes none of three servers gets less than a tenth.
    EXPECT_GT(writes.total().stores, 100U) << "server " << node;
    of_servers += writes;
  }
  // The costs are those of all servers within the interval, whose 1,000 updates are more than the
  // 200 records that were loaded before; one of two or three servers has no more than its share.
  const std::uint64_t measured = measurement.costs_of("server").writes.total().stores;
  EXPECT_LE(measured, of_servers.total().stores);
  EXPECT_GT(measured, of_servers.total().stores / 2);
}

// Each server has partitions of its own, each with room for its share; a system that spans servers
// has the partitions of one server, each on all of them.
TEST_P(Servers, HaveTheirShareOfPartitionsUnlessASystemSpansThem) {
  const harness::Point point = this->point();
  KvSystem system = this->system();
  const std::uint32_t of_server =
      system.shares_partition ? 1 : static_cast<std::uint32_t>(threads());
  EXPECT_EQ(partitions(point, system), of_server * servers());
  const kv::KvConfig own = partition_config(point, system);
  EXPECT_EQ(own.servers, 1U);
  if (partitions(point, system) > 1) {
    EXPECT_LT(own.records, 200U);
  } else {
    EXPECT_EQ(own.records, 200U);
  }
  system.spans_servers = true;
  EXPECT_EQ(partitions(point, system), of_server);
  EXPECT_EQ(partition_config(point, system).servers, servers());
}

}  // namespace
}  // namespace perdura::bench
