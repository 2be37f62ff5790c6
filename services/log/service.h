// The entry of logs in the table of services.
#pragma once

#include <memory>
#include <span>

#include "services/log/log.h"
#include "services/service.h"

namespace perdura::services {

class LogService final : public Service {
 public:
  // The table `systems` must outlive this.
  explicit LogService(std::span<const LogSystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "log"; }
  std::string_view what() const override { return "a log of a server: append"; }
  std::vector<SystemInfo> systems() const override;
  std::string_view acknowledged() const override { return "acknowledged appends"; }
  std::string_view observed() const override { return "what reads returned"; }
  std::span<const CrashSchedule> schedules() const override;
  CrashHistory crash_history(std::string_view system, const CrashSetup& setup,
                             const CrashSchedule& schedule) const override;
  std::unique_ptr<CrashScenario> generated_scenario(std::string_view system,
                                                    const CrashSetup& setup, pmem::Tape& tape,
                                                    std::uint32_t failures) const override;

 private:
  const LogSystem& system(std::string_view name) const;

  std::span<const LogSystem> systems_;
};

}  // namespace perdura::services
