#include "services/fs/crash/service.h"

#include <algorithm>

#include "services/fs/crash/plan.h"
#include "services/fs/crash/scenario.h"

namespace perdura::fs {

std::vector<services::SystemInfo> FsService::systems() const {
  std::vector<services::SystemInfo> all;
  for (const FsSystem& system : systems_) all.push_back(info_of(system));
  return all;
}

std::span<const services::CrashSchedule> FsService::schedules() const { return fs_schedules(); }

const FsSystem& FsService::system(std::string_view name) const {
  return *std::find_if(systems_.begin(), systems_.end(),
                       [&](const FsSystem& candidate) { return candidate.info.name == name; });
}

services::CrashHistory FsService::crash_history(std::string_view name,
                                                const services::CrashSetup& setup,
                                                const services::CrashSchedule& schedule) const {
  return fs_crash_history(system(name), setup, schedule);
}

std::uint64_t FsService::sequences(const services::SequenceKind& kind) const {
  return fs::sequences(kind);
}

services::CrashSequence FsService::crash_sequence(std::string_view name,
                                                  const services::CrashSetup& setup,
                                                  const services::SequenceKind& kind,
                                                  std::uint64_t number) const {
  return fs_crash_sequence(system(name), setup, kind, number);
}

std::unique_ptr<services::CrashScenario> FsService::generated_scenario(
    std::string_view name, const services::CrashSetup& setup, pmem::Tape& tape,
    std::uint32_t failures) const {
  return fs_generated_scenario(system(name), setup, tape, failures);
}

}  // namespace perdura::fs
