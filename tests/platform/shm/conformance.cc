// shm joins the conformance suite, plain and with an emulated network latency.
#include "tests/platform/conformance/conformance.h"

#include "platform/shm/shm_platform.h"

namespace {

using perdura::conformance::Options;

std::unique_ptr<perdura::Platform> make_shm(
    const Options& options, perdura::Picoseconds network_latency,
    perdura::Picoseconds retry_after = perdura::Microseconds(100)) {
  perdura::ShmOptions shm;
  shm.node_count = options.node_count;
  shm.machines = options.machines;
  shm.pm_directory = perdura::conformance::new_pm_directory();
  shm.fabric.network_latency = network_latency;
  shm.fabric.rnr_timer = retry_after;
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

// Whoever finds no receive buffer looks again at once, so that many claim each that comes.
std::vector<perdura::conformance::Case> eager() {
  return perdura::conformance::cases([](const Options& options) {
    return make_shm(options, perdura::Picoseconds(0), perdura::Picoseconds(0));
  });
}

std::vector<perdura::conformance::Case> delayed() {
  return perdura::conformance::cases(
      [](const Options& options) { return make_shm(options, perdura::Microseconds(2)); });
}

}  // namespace

PERDURA_CONFORMANCE(Shm, plain())
PERDURA_CONFORMANCE_SUITE(Shm, Rings, plain())
PERDURA_CONFORMANCE(ShmDelayed, delayed())
PERDURA_CONFORMANCE_SUITE(ShmEager, FabricReceive, eager())
