// sim joins the conformance suite, on the model of a machine with every capability.
#include "tests/platform/conformance/conformance.h"

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace {

using perdura::conformance::Options;

std::unique_ptr<perdura::Platform> make_sim(const Options& options) {
  perdura::sim::Profile profile = perdura::test::erda_testbed();
  profile.nic.flush = profile.nic.flush_persistence = profile.nic.atomic_write = true;
  if (options.receiver_not_ready_retries >= 0) {
    profile.retry.rnr_retries = static_cast<std::uint32_t>(options.receiver_not_ready_retries);
  }
  return std::make_unique<perdura::sim::SimPlatform>(std::move(profile), options.node_count,
                                                     options.machines);
}

}  // namespace

PERDURA_CONFORMANCE(Sim, perdura::conformance::cases(make_sim))
PERDURA_CONFORMANCE_SUITE(Sim, Rings, perdura::conformance::cases(make_sim))
