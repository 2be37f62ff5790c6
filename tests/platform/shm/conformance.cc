// shm joins the conformance suite, plain and with an emulated network latency.
#include "tests/platform/conformance/conformance.h"

#include "platform/shm/shm_platform.h"

namespace {

using perdura::conformance::Options;

std::unique_ptr<perdura::Platform> make_shm(const Options& options,
                                            perdura::Picoseconds network_latency) {
  perdura::ShmOptions shm;
  shm.node_count = options.node_count;
  shm.machines = options.machines;
  shm.pm_directory = perdura::conformance::new_pm_directory();
  shm.fabric.network_latency = network_latency;
  shm.fabric.connection_timeout = options.connection_timeout;
  if (options.receiver_not_ready_retries >= 0) {
    shm.fabric.rnr_retries = options.receiver_not_ready_retries;
  }
  return std::make_unique<perdura::ShmPlatform>(std::move(shm));
}

std::vector<perdura::conformance::Case> plain() {
  return perdura::conformance::cases(
      [](const Options& options) { return make_shm(options, perdura::Picoseconds(0)); });
}

std::vector<perdura::conformance::Case> delayed() {
  return perdura::conformance::cases(
      [](const Options& options) { return make_shm(options, perdura::Microseconds(2)); });
}

}  // namespace

PERDURA_CONFORMANCE(Shm, plain())
PERDURA_CONFORMANCE_SUITE(Shm, Rings, plain())
PERDURA_CONFORMANCE(ShmDelayed, delayed())
