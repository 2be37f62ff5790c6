// The socket endpoints of shm join those suites of the conformance tests that are about the fabric.
#include "tests/platform/conformance/conformance.h"
#include "platform/shm/shm_platform.h"
#include "tests/platform/tcp/over_sockets.h"

namespace {

using perdura::conformance::Options;

std::vector<perdura::conformance::Case> over_sockets() {
  auto all = perdura::conformance::cases([](const Options& options) {
    perdura::ShmOptions shm;
    shm.node_count = options.node_count;
    shm.machines = options.machines;
    shm.pm_directory = perdura::conformance::new_pm_directory();
    shm.fabric.connection_timeout = options.connection_timeout;
    return std::make_unique<perdura::test::OverSockets>(
        std::make_unique<perdura::ShmPlatform>(std::move(shm)));
  });
  for (auto& each : all) {
    each.can.write_with_immediate = false;
    each.can.atomics = false;
    each.can.extents = false;
    each.gives_up = false;
  }
  return all;
}

}  // namespace

PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricOperations, over_sockets())
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricOrder, over_sockets())
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricAccess, over_sockets())
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricReceive, over_sockets())
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricConnection, over_sockets())
PERDURA_CONFORMANCE_SUITE(ShmSockets, FabricContention, over_sockets())
PERDURA_CONFORMANCE_SUITE(ShmSockets, NodeAccounting, over_sockets())
