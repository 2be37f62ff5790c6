// The entry of file systems in the table of services.
#pragma once

#include <memory>
#include <span>

#include "services/fs/fs.h"
#include "services/service.h"

namespace perdura::fs {

class FsService final : public services::Service {
 public:
  // The table `systems` must outlive this.
  explicit FsService(std::span<const FsSystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "fs"; }
  std::string_view what() const override { return "a file system: names, data, attributes"; }
  std::vector<services::SystemInfo> systems() const override;
  std::string_view acknowledged() const override { return "acknowledged operations"; }
  std::string_view observed() const override { return "what sessions saw"; }
  std::span<const services::CrashSchedule> schedules() const override;
  services::CrashHistory crash_history(std::string_view system, const services::CrashSetup& setup,
                                       const services::CrashSchedule& schedule) const override;
  std::uint64_t sequences(const services::SequenceKind& kind) const override;
  services::CrashSequence crash_sequence(std::string_view system, const services::CrashSetup& setup,
                                         const services::SequenceKind& kind,
                                         std::uint64_t number) const override;
  std::unique_ptr<services::CrashScenario> generated_scenario(
      std::string_view system, const services::CrashSetup& setup, pmem::Tape& tape,
      std::uint32_t failures) const override;

 private:
  const FsSystem& system(std::string_view name) const;

  std::span<const FsSystem> systems_;
};

}  // namespace perdura::fs
