#include "services/fs/crash/scenario.h"

#include <utility>

#include "services/fs/crash/cluster_scenario.h"
#include "services/fs/crash/node_scenario.h"
#include "services/fs/crash/plan.h"

namespace perdura::fs {

namespace {

constexpr services::CrashSchedule kSchedules[] = {
    {"session", "a session does operations of all kinds on a small tree"},
    {"sessions", "two sessions change the same file and the same names"},
};

FsConfig config_for(const FsSystem& system, const services::CrashSetup& setup) {
  FsConfig config{.now = {999, 0}, .parameters = setup.parameters};
  services::add_missing(system.small, config.parameters);
  if (system.cluster == nullptr) return config;
  const FsCluster& cluster = *system.cluster;
  config.servers.assign(cluster.small.begin(), cluster.small.end());
  if (setup.correct) {
    config.data_method = methods::choose({{setup.model, pmem::Medium::pm}}, *cluster.update, {});
  }
  return config;
}

std::unique_ptr<services::CrashScenario> scenario_of(const FsSystem& system, FsConfig config,
                                                     FsCrashPlan plan) {
  return system.cluster == nullptr ? node_scenario(system, std::move(config), std::move(plan))
                                   : cluster_scenario(system, std::move(config), std::move(plan));
}

}  // namespace

std::span<const services::CrashSchedule> fs_schedules() { return kSchedules; }

services::CrashHistory fs_crash_history(const FsSystem& system, const services::CrashSetup& setup,
                                        const services::CrashSchedule& schedule) {
  const FsCrashPlan plan = schedule.name == kSchedules[0].name
                               ? one_session_plan(system.cluster != nullptr)
                               : two_sessions_plan();
  return [&system, plan, config = config_for(system, setup)] {
    return scenario_of(system, config, plan);
  };
}

services::CrashSequence fs_crash_sequence(const FsSystem& system, const services::CrashSetup& setup,
                                          std::uint32_t length, std::uint64_t number) {
  return {name_of_sequence(length, number),
          [&system, plan = sequence_plan(length, number), config = config_for(system, setup)] {
            return scenario_of(system, config, plan);
          }};
}

std::unique_ptr<services::CrashScenario> fs_generated_scenario(const FsSystem& system,
                                                               const services::CrashSetup& setup,
                                                               pmem::Tape& tape,
                                                               std::uint32_t failures) {
  return scenario_of(system, config_for(system, setup), generated_plan(tape, failures));
}

}  // namespace perdura::fs
