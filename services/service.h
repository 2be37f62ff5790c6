// What all services say of themselves and of their systems: enough to list them, to explore their
// power failures, and to say what they guarantee, without knowing what they do. A new service is a
// folder here and a line in the table (systems/registry/registry.cc).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "services/crash.h"
#include "services/guarantee.h"
#include "services/setting.h"

namespace perdura::services {

struct SystemInfo {
  std::string_view name;       // as on the command line: lower case with dashes
  std::string_view title;      // as in a legend
  std::string_view paper;      // title, authors, year; section
  std::string_view guarantee;  // what a completed change means
  // The same in one word, as the paper promises it on its own testbed.
  GuaranteeLevel level = GuaranteeLevel::visible;
  // Its parameters that change what it guarantees: explored with each, too.
  std::span<const Setting> changes_guarantee{};
  // All that it has of its own, `[systems.NAME]` of an experiment.
  std::span<const Parameter> parameters{};
};

class Service {
 public:
  virtual ~Service() = default;
  virtual std::string_view name() const = 0;
  // What its clients can do, in a few words.
  virtual std::string_view what() const = 0;
  virtual std::vector<SystemInfo> systems() const = 0;

  // The histories in which power failures are tried. At least one.
  virtual std::span<const CrashSchedule> schedules() const = 0;
  // Makes runs of one of these with a system of this service, all alike. Throws UsageError if the
  // system does not take the parameters, here or when it is run.
  virtual CrashHistory crash_history(std::string_view system, const CrashSetup& setup,
                                     const CrashSchedule& schedule) const = 0;
};

// A system and the service that it implements.
struct ServedSystem {
  const Service* service = nullptr;
  SystemInfo info;
};

}  // namespace perdura::services
