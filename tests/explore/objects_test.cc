// Stores of pools under power failures: what MCAS acknowledges survives, with either engine, and
// shards that forget, or answer before they have stored, are found out.
#include <gtest/gtest.h>

#include "explore/crash.h"
#include "explore/explored.h"
#include "services/objects/service.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using pmem::PersistenceDomain;
using services::Condition;
using services::GuaranteeLevel;

constexpr pmem::PersistenceModel kStrict{PersistenceDomain::dmp, true};

CrashResult explore_pools(const objects::System& system, const GivenParameters& parameters = {}) {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  const services::ObjectsService service(std::span(&system, 1));
  CrashOptions options{.setup = {.model = kStrict}, .recoveries = 3};
  options.setup.parameters = parameters;
  return explore_crashes({&service, system.info}, profile, options);
}

TEST(ObjectsCrashes, LeaveAllThatWasAcknowledged) {
  for (const objects::System& system : systems::object_systems()) {
    for (const ExploredSetting& setting : explored_settings(system.info)) {
      if (setting.keeps_nothing) continue;
      const CrashResult result = explore_pools(system, setting.parameters);
      EXPECT_EQ(result.strongest(), GuaranteeLevel::durable)
          << explored_name(system.info, setting) << "\n"
          << result[Condition::durable].first_loss;
      EXPECT_GT(result.crash_points, 500U);
      EXPECT_GE(result.events.at("removed pools"), 3U);
      EXPECT_GE(result.events.at("parts written"), 2U);
      EXPECT_GE(result.events.at("direct puts"), 5U);
      EXPECT_TRUE(result.unexplored.empty());
    }
  }
}

// After a failure it opens other memory.
TEST(ObjectsCrashes, FindAShardThatForgets) {
  static int opened;
  static const objects::System& right = systems::find_object_system("mcas-pools");
  objects::System wrong = right;
  wrong.open = [](Thread& thread, std::string name, const objects::Config& config) {
    return right.open(thread, name + std::to_string(opened++), config);
  };
  const CrashResult result = explore_pools(wrong);
  EXPECT_FALSE(result[Condition::acknowledged].held);
  EXPECT_EQ(result.strongest(), GuaranteeLevel::ordered) << "the empty shard is one that there was";
  EXPECT_NE(result[Condition::acknowledged].first_loss.find(
                "=> impossible: opening of pool 0: not found"),
            std::string::npos)
      << result[Condition::acknowledged].first_loss;
}

}  // namespace
}  // namespace perdura::explore::test
