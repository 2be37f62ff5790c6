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
    {"copies", "the same, and each group of stores has two of them; only if it is asked for",
     false},
};
constexpr std::string_view kCopies = kSchedules[2].name;

// A second store for each one: on nodes of its own, after the others.
void add_copies(std::vector<FsServerNode>& servers) {
  const std::size_t count = servers.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (servers[i].role != FsRole::store) continue;
    servers.push_back({static_cast<NodeId>(servers.size()), FsRole::store, servers[i].group});
  }
}

FsConfig config_for(const FsSystem& system, const services::CrashSetup& setup) {
  FsConfig config{.now = {999, 0}, .parameters = setup.parameters};
  services::add_missing(system.small, config.parameters);
  if (system.cluster == nullptr) return config;
  const FsCluster& cluster = *system.cluster;
  const auto mirrors = config.parameters.find("mirrors");
  const bool has_mirror = mirrors != config.parameters.end() && mirrors->second.number() > 0;
  const auto servers = has_mirror ? cluster.small_with_mirror : cluster.small;
  config.servers.assign(servers.begin(), servers.end());
  if (setup.correct) {
    config.data_method = methods::choose({{setup.model, pmem::Medium::pm}}, *cluster.update, {});
  }
  if (setup.correct && cluster.mirror_update) {
    config.mirror_method =
        methods::choose({{setup.model, pmem::Medium::pm}}, *cluster.mirror_update, {});
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
  FsConfig config = config_for(system, setup);
  if (schedule.name == kCopies) {
    if (system.cluster == nullptr) return {};
    add_copies(config.servers);
  }
  const FsCrashPlan plan = schedule.name == kSchedules[0].name
                               ? one_session_plan(system.cluster != nullptr)
                               : two_sessions_plan();
  return [&system, plan, config] { return scenario_of(system, config, plan); };
}

services::CrashSequence fs_crash_sequence(const FsSystem& system, const services::CrashSetup& setup,
                                          const services::SequenceKind& kind,
                                          std::uint64_t number) {
  return {name_of_sequence(kind, number),
          [&system, plan = sequence_plan(kind, number), config = config_for(system, setup)] {
            return scenario_of(system, config, plan);
          }};
}

std::unique_ptr<services::CrashScenario> fs_generated_scenario(const FsSystem& system,
                                                               const services::CrashSetup& setup,
                                                               pmem::Tape& tape,
                                                               std::uint32_t failures) {
  FsConfig config = config_for(system, setup);
  if (system.cluster != nullptr && tape.stream("copies").choose(2) == 1) {
    add_copies(config.servers);
  }
  return scenario_of(system, std::move(config), generated_plan(tape, failures));
}

}  // namespace perdura::fs
