#include "services/memory/service.h"

#include <algorithm>

#include "services/memory/crash_scenario.h"

namespace perdura::services {

std::vector<SystemInfo> MemoryService::systems() const {
  std::vector<SystemInfo> all;
  for (const MemorySystem& system : systems_) {
    all.push_back(info_of(system));
  }
  return all;
}

std::span<const CrashSchedule> MemoryService::schedules() const { return memory_schedules(); }

const MemorySystem& MemoryService::system(std::string_view name) const {
  return *std::find_if(systems_.begin(), systems_.end(),
                       [&](const MemorySystem& candidate) { return candidate.info.name == name; });
}

CrashHistory MemoryService::crash_history(std::string_view name, const CrashSetup& setup,
                                          const CrashSchedule&) const {
  return memory_crash_history(system(name), setup);
}

std::unique_ptr<CrashScenario> MemoryService::generated_scenario(std::string_view name,
                                                                 const CrashSetup& setup,
                                                                 pmem::Tape& tape,
                                                                 std::uint32_t failures) const {
  return memory_generated_scenario(system(name), setup, tape, failures);
}

}  // namespace perdura::services
