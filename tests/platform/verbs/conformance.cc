// verbs joins the conformance suite where this host has an RDMA device that can be used.
#include "tests/platform/conformance/conformance.h"

#include "platform/base/error.h"
#include "platform/verbs/verbs_platform.h"
#include "tests/platform/tcp/over_sockets.h"

namespace {

using perdura::conformance::Options;

std::unique_ptr<perdura::Platform> make_verbs(const Options& options) {
  perdura::VerbsOptions verbs;
  verbs.node_count = options.node_count;
  verbs.pm_directory = perdura::conformance::new_pm_directory();
  verbs.fabric.connection_timeout = options.connection_timeout;
  if (options.receiver_not_ready_retries >= 0) {
    verbs.fabric.rnr_retries = static_cast<std::uint8_t>(options.receiver_not_ready_retries);
  }
  return std::make_unique<perdura::VerbsPlatform>(std::move(verbs));
}

// With why the suite cannot run here, or what the device can.
std::vector<perdura::conformance::Case> look() {
  std::vector<perdura::conformance::Case> all = perdura::conformance::cases(make_verbs);
  try {
    const perdura::fabric::verbs::Device device({});
    for (auto& each : all) each.can = device.capabilities();
  } catch (const perdura::PlatformError& error) {
    for (auto& each : all) each.missing = error.what();
  }
  return all;
}

std::vector<perdura::conformance::Case> on_device() {
  static const std::vector<perdura::conformance::Case> all = look();
  return all;
}

std::vector<perdura::conformance::Case> over_sockets() {
  std::vector<perdura::conformance::Case> all = on_device();
  for (auto& each : all) {
    each.make = [](const Options& options) {
      return std::make_unique<perdura::test::OverSockets>(make_verbs(options));
    };
    each.can = {.write_with_immediate = false, .atomics = false};
    each.gives_up = false;
  }
  return all;
}

}  // namespace

PERDURA_CONFORMANCE(Verbs, on_device())
PERDURA_CONFORMANCE_SUITE(VerbsSockets, FabricOperations, over_sockets())
PERDURA_CONFORMANCE_SUITE(VerbsSockets, FabricOrder, over_sockets())
PERDURA_CONFORMANCE_SUITE(VerbsSockets, FabricAccess, over_sockets())
PERDURA_CONFORMANCE_SUITE(VerbsSockets, FabricReceive, over_sockets())
PERDURA_CONFORMANCE_SUITE(VerbsSockets, FabricConnection, over_sockets())
PERDURA_CONFORMANCE_SUITE(VerbsSockets, FabricContention, over_sockets())
PERDURA_CONFORMANCE_SUITE(VerbsSockets, NodeAccounting, over_sockets())
