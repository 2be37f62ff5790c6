// The driver `log`: one client appends records to a log in the memory of a server. Its systems are
// the registry's logs, and two that the client keeps itself: `local-log`, in its node's memory
// (local_log_target.h), and `libpmemlog`, in a file (libpmemlog_target.h).
#pragma once

#include "harness/run/point.h"
#include "services/log/log.h"

namespace perdura::bench {

class LogDriver final : public harness::Driver {
 public:
  // `systems` is the registry's table; tests pass their own.
  explicit LogDriver(std::span<const services::LogSystem> systems) : systems_(systems) {}

  std::string_view name() const override { return "log"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  void check_platform_of(const harness::Point& point, std::string_view platform,
                         const std::string& where) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
  void conclude(const harness::Point& point, harness::Measurement& measurement) const override;

 private:
  // The log of the point's system; null if the client keeps the log itself.
  const services::LogSystem* system_of_server(const harness::Point& point) const;
  services::SystemInfo info_of(const harness::Point& point) const;
  services::LogConfig config_of(const harness::Point& point) const;

  std::span<const services::LogSystem> systems_;
};

}  // namespace perdura::bench
