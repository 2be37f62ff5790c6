#include "services/log/service.h"

#include <algorithm>

#include "services/log/crash_scenario.h"

namespace perdura::services {

std::vector<SystemInfo> LogService::systems() const {
  std::vector<SystemInfo> all;
  for (const LogSystem& system : systems_) all.push_back(info_of(system));
  return all;
}

std::span<const CrashSchedule> LogService::schedules() const { return log_schedules(); }

const LogSystem& LogService::system(std::string_view name) const {
  return *std::find_if(systems_.begin(), systems_.end(),
                       [&](const LogSystem& candidate) { return candidate.info.name == name; });
}

CrashHistory LogService::crash_history(std::string_view name, const CrashSetup& setup,
                                       const CrashSchedule&) const {
  return log_crash_history(system(name), setup);
}

std::unique_ptr<CrashScenario> LogService::generated_scenario(std::string_view name,
                                                              const CrashSetup& setup,
                                                              pmem::Tape& tape,
                                                              std::uint32_t failures) const {
  return log_generated_scenario(system(name), setup, tape, failures);
}

}  // namespace perdura::services
