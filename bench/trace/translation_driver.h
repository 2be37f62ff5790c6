// The driver `translation`: replays the trace of a workload against a table of translations, and
// counts what a NIC would look up and how often its cache has it (translation_replay.h), and what
// registering the files costs. No time is measured, so it is for platform `sim` only. Its systems
// are the ways of translating: conventional registrations with pages of 4 KiB or 2 MiB, and
// FileMR's ranges.
//
// Where files are in memory is assumed, or nova decides it (placed_files.h). Instead of a trace it
// may be a single file of a given size.
#pragma once

#include "harness/run/point.h"

namespace perdura::bench {

class TranslationDriver final : public harness::Driver {
 public:
  std::string_view name() const override { return "translation"; }
  std::span<const Parameter> parameters() const override;
  std::vector<harness::DriverDeclarations::System> systems() const override;
  void prepare(harness::Point& point, const harness::Locations& locations) const override;
  void check(const harness::Point& point) const override;
  void check_platform(std::string_view platform, const std::string& where) const override;
  harness::Roles roles(const harness::PointSettings& settings, NodeId nodes) const override;
  std::vector<schema::Column> columns(std::string_view name) const override;
  std::span<const std::string_view> columns_if_unusual() const override;
  std::optional<Bytes> memory(const harness::Point& point) const override;
  harness::Measurement run(Platform& platform, const harness::Point& point) const override;
};

}  // namespace perdura::bench
