// Stores of pools: the entry of the service in the table of services.
#pragma once

#include <memory>
#include <span>

#include "services/objects/objects.h"
#include "services/service.h"

namespace perdura::services {

class ObjectsService final : public Service {
 public:
  // `systems` must outlive this object.
  explicit ObjectsService(std::span<const objects::System> systems) : systems_(systems) {}

  std::string_view name() const override { return "objects"; }
  std::string_view what() const override {
    return "pools of keys and values of a shard: put, get, erase, direct transfers";
  }
  std::vector<SystemInfo> systems() const override;
  std::string_view acknowledged() const override { return "acknowledged changes"; }
  std::string_view observed() const override { return "what gets returned"; }
  std::span<const CrashSchedule> schedules() const override;
  CrashHistory crash_history(std::string_view system, const CrashSetup& setup,
                             const CrashSchedule& schedule) const override;
  std::unique_ptr<CrashScenario> generated_scenario(std::string_view system,
                                                    const CrashSetup& setup, pmem::Tape& tape,
                                                    std::uint32_t failures) const override;

 private:
  const objects::System& system(std::string_view name) const;

  std::span<const objects::System> systems_;
};

}  // namespace perdura::services
