#include "services/kv/service.h"

#include <algorithm>

#include "services/kv/crash_scenario.h"

namespace perdura::services {

SystemInfo info_of(const kv::KvSystem& system) {
  return {.name = system.name,
          .title = system.title,
          .paper = system.paper,
          .guarantee = system.guarantee,
          .level = system.level,
          .changes_guarantee = system.changes_guarantee,
          .parameters = system.parameters,
          .chooses_method = system.put.has_value(),
          .needs = system.needs};
}

std::vector<SystemInfo> KvService::systems() const {
  std::vector<SystemInfo> all;
  for (const kv::KvSystem& system : systems_) all.push_back(info_of(system));
  return all;
}

std::span<const CrashSchedule> KvService::schedules() const { return kv_schedules(); }

const kv::KvSystem& KvService::system(std::string_view name) const {
  return *std::find_if(systems_.begin(), systems_.end(),
                       [&](const kv::KvSystem& candidate) { return candidate.name == name; });
}

CrashHistory KvService::crash_history(std::string_view name, const CrashSetup& setup,
                                      const CrashSchedule& schedule) const {
  return kv_crash_history(system(name), setup, schedule);
}

std::unique_ptr<CrashScenario> KvService::generated_scenario(std::string_view name,
                                                             const CrashSetup& setup,
                                                             pmem::Tape& tape,
                                                             std::uint32_t failures) const {
  return kv_generated_scenario(system(name), setup, tape, failures);
}

}  // namespace perdura::services
