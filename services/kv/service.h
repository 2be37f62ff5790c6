// The key-value service: its entry in the table of services.
#pragma once

#include <memory>
#include <span>

#include "services/kv/kv.h"
#include "services/service.h"

namespace perdura::services {

SystemInfo info_of(const kv::KvSystem& system);

class KvService final : public Service {
 public:
  // `systems` is a table that must outlive this object.
  explicit KvService(std::span<const kv::KvSystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "kv"; }
  std::string_view what() const override { return "keys and values: put, get, erase"; }
  std::vector<SystemInfo> systems() const override;
  std::string_view acknowledged() const override { return "acknowledged writes"; }
  std::string_view observed() const override { return "what gets returned"; }
  std::span<const CrashSchedule> schedules() const override;
  CrashHistory crash_history(std::string_view system, const CrashSetup& setup,
                             const CrashSchedule& schedule) const override;
  std::unique_ptr<CrashScenario> generated_scenario(std::string_view system,
                                                    const CrashSetup& setup, pmem::Tape& tape,
                                                    std::uint32_t failures) const override;

 private:
  const kv::KvSystem& system(std::string_view name) const;

  std::span<const kv::KvSystem> systems_;
};

}  // namespace perdura::services
