// sim joins the conformance suite, on the model of a machine with every capability: as its times
// are, and with messages and devices late at random. (Tasks that overtake others are not tested:
// the runtime promises that they do not.)
#include "tests/platform/conformance/conformance.h"

#include <deque>

#include "platform/pmem/model/choices.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace {

using perdura::conformance::Options;
using perdura::sim::SimPlatform;

std::unique_ptr<SimPlatform> make(const Options& options) {
  perdura::sim::Profile profile = perdura::test::erda_testbed();
  profile.nic.flush = profile.nic.flush_persistence = profile.nic.atomic_write = true;
  if (options.receiver_not_ready_retries >= 0) {
    profile.retry.rnr_retries = static_cast<std::uint32_t>(options.receiver_not_ready_retries);
  }
  return std::make_unique<SimPlatform>(std::move(profile), options.node_count, options.machines);
}

std::unique_ptr<perdura::Platform> make_sim(const Options& options) { return make(options); }

std::unique_ptr<perdura::Platform> make_late(const Options& options) {
  constexpr std::uint64_t kSeed = 11;
  constexpr std::size_t kRarity = 3;
  // They outlive the platforms.
  static std::deque<perdura::pmem::SparseChoices> all;
  auto platform = make(options);
  perdura::pmem::Choices& choices = all.emplace_back(kSeed, kRarity);
  platform->choose_schedule({.messages = &choices, .devices = &choices});
  return platform;
}

}  // namespace

PERDURA_CONFORMANCE(Sim, perdura::conformance::cases(make_sim))
PERDURA_CONFORMANCE_SUITE(Sim, Rings, perdura::conformance::cases(make_sim))
PERDURA_CONFORMANCE(SimLate, perdura::conformance::cases(make_late))
