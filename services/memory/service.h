// Replicated memory: the entry of the service in the table of services.
#pragma once

#include <memory>
#include <span>

#include "services/memory/memory.h"
#include "services/service.h"

namespace perdura::services {

class MemoryService final : public Service {
 public:
  // `systems`: a table that outlives this.
  explicit MemoryService(std::span<const MemorySystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "memory"; }
  std::string_view what() const override { return "memory with copies on other nodes: sync"; }
  std::vector<SystemInfo> systems() const override;
  std::string_view acknowledged() const override { return "acknowledged syncs"; }
  std::string_view observed() const override { return "what readers of copies saw"; }
  std::span<const CrashSchedule> schedules() const override;
  CrashHistory crash_history(std::string_view system, const CrashSetup& setup,
                             const CrashSchedule& schedule) const override;
  std::unique_ptr<CrashScenario> generated_scenario(std::string_view system,
                                                    const CrashSetup& setup, pmem::Tape& tape,
                                                    std::uint32_t failures) const override;

 private:
  const MemorySystem& system(std::string_view name) const;

  std::span<const MemorySystem> systems_;
};

}  // namespace perdura::services
