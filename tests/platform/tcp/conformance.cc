// Socket endpoints join those suites of the conformance tests that are about the fabric.
#include "tests/platform/conformance/conformance.h"
#include "platform/shm/shm_platform.h"
#include "platform/sim/sim_platform.h"
#include "tests/platform/tcp/over_sockets.h"
#include "tests/support/platforms.h"

namespace {

using perdura::conformance::Options;

std::unique_ptr<perdura::Platform> make_plain_shm(const Options& options) {
  perdura::ShmOptions shm;
  shm.node_count = options.node_count;
  shm.machines = options.machines;
  shm.pm_directory = perdura::conformance::new_pm_directory();
  shm.fabric.connection_timeout = options.connection_timeout;
  return std::make_unique<perdura::ShmPlatform>(std::move(shm));
}

std::unique_ptr<perdura::Platform> make_plain_sim(const Options& options) {
  return std::make_unique<perdura::sim::SimPlatform>(perdura::test::erda_testbed(),
                                                     options.node_count, options.machines);
}

std::vector<perdura::conformance::Case> over_sockets(const perdura::conformance::Factory& make) {
  auto all = perdura::conformance::cases([make](const Options& options) {
    return std::make_unique<perdura::test::OverSockets>(make(options));
  });
  for (auto& each : all) {
    each.can.write_with_immediate = false;
    each.can.atomics = false;
    each.can.commits = false;
    each.gives_up = false;
  }
  return all;
}

}  // namespace

PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricOperations, over_sockets(make_plain_shm))
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricOrder, over_sockets(make_plain_shm))
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricAccess, over_sockets(make_plain_shm))
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricReceive, over_sockets(make_plain_shm))
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricConnection, over_sockets(make_plain_shm))
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricContention, over_sockets(make_plain_shm))
PERDURA_CONFORMANCE_SUITE(ShmSockets, NodeAccounting, over_sockets(make_plain_shm))

PERDURA_CONFORMANCE_SUITE(SimSockets, FabricOperations, over_sockets(make_plain_sim))
PERDURA_CONFORMANCE_SUITE(SimSockets, FabricOrder, over_sockets(make_plain_sim))
PERDURA_CONFORMANCE_SUITE(SimSockets, FabricAccess, over_sockets(make_plain_sim))
PERDURA_CONFORMANCE_SUITE(SimSockets, FabricReceive, over_sockets(make_plain_sim))
PERDURA_CONFORMANCE_SUITE(SimSockets, FabricConnection, over_sockets(make_plain_sim))
PERDURA_CONFORMANCE_SUITE(SimSockets, FabricContention, over_sockets(make_plain_sim))
PERDURA_CONFORMANCE_SUITE(SimSockets, NodeAccounting, over_sockets(make_plain_sim))
