#include "services/objects/service.h"

#include <algorithm>

#include "services/objects/crash_scenario.h"

namespace perdura::services {

std::vector<SystemInfo> ObjectsService::systems() const {
  std::vector<SystemInfo> all;
  for (const objects::System& system : systems_) all.push_back(system.info);
  return all;
}

std::span<const CrashSchedule> ObjectsService::schedules() const { return objects_schedules(); }

const objects::System& ObjectsService::system(std::string_view name) const {
  return *std::find_if(systems_.begin(), systems_.end(), [&](const objects::System& candidate) {
    return candidate.info.name == name;
  });
}

CrashHistory ObjectsService::crash_history(std::string_view name, const CrashSetup& setup,
                                           const CrashSchedule& schedule) const {
  return objects_crash_history(system(name), setup, schedule);
}

std::unique_ptr<CrashScenario> ObjectsService::generated_scenario(std::string_view name,
                                                                  const CrashSetup& setup,
                                                                  pmem::Tape& tape,
                                                                  std::uint32_t failures) const {
  return objects_generated_scenario(system(name), setup, tape, failures);
}

}  // namespace perdura::services
