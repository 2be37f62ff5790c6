// Recovery after the death of a process finds what is visible, not what is durable
// (docs/restart.md): the power fails soon after the process has been started again.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bench/crash/soak.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::bench::test {
namespace {

using pmem::Tape;

const sim::Profile& restarted_testbed() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

// A run of this seed in which first the servers' processes die and then their power fails, and
// nothing else happens to anybody. The image is the one that keeps least.
Tape death_and_power_failure(const SoakCase& one, std::uint64_t seed) {
  Tape random(seed);
  run_once(one, restarted_testbed(), random);
  Tape::Streams streams = random.drawn();
  pmem::RandomChoices times(seed);
  const auto within = [&times](Picoseconds limit) {
    return std::uint64_t{times.choose(static_cast<std::size_t>(limit.count()))};
  };
  constexpr std::uint64_t kPlanned = 2;
  constexpr std::uint64_t kProcess = 3;
  constexpr std::uint64_t kPower = 0;
  const std::uint64_t death = within(Microseconds(130));
  const std::uint64_t failure = within(Microseconds(seed % 2 == 0 ? 10 : 100));
  streams["failures"] = {kPlanned, kProcess, death, kPower, failure};
  for (const char* const stream : {"stalls", "deaths", "image-1", "image-2", "image-3"}) {
    streams.erase(stream);
  }
  return Tape(streams);
}

class Restarted : public testing::TestWithParam<services::ServedSystem> {};

TEST_P(Restarted, KeepsItsLevelWhenThePowerFailsNext) {
  constexpr std::uint64_t kSeeds = 25;
  const std::uint64_t first = perdura::test::random_seed();
  for (const SoakCase& one : soak_cases({GetParam()})) {
    if (one.model.domain != pmem::PersistenceDomain::dmp) continue;
    for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
      Tape tape = death_and_power_failure(one, seed);
      const SoakRun run = run_once(one, restarted_testbed(), tape);
      ASSERT_EQ(run.failures, 2U);
      ASSERT_GE(run.kept, one.expected) << one.name() << ", seed " << seed << "\n"
                                        << run.events << run.loss << tape.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, Restarted, testing::ValuesIn(systems::all_systems()),
                         [](const auto& one) {
                           std::string name(one.param.info.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perdura::bench::test
