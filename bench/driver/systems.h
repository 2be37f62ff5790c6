// Functions that every driver needs for its table of systems, whatever the interface of these
// systems. An entry of the table has a name and parameters, or a member `info` that has them:
//
//   std::vector<harness::DriverDeclarations::System> QueueDriver::systems() const {
//     return declarations_of(systems_);
//   }
//   Measurement QueueDriver::run(Platform& platform, const Point& point) const {
//     return QueueRun(platform, point, system_of(point, systems_)).execute();
//   }
#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/results/measurement.h"
#include "harness/run/point.h"
#include "harness/schema/columns.h"
#include "platform/base/error.h"
#include "services/metric.h"
#include "services/service.h"

namespace perdura::bench {

template <class System>
const auto& info_in(const System& entry) {
  if constexpr (requires { entry.info; }) {
    return entry.info;
  } else {
    return entry;
  }
}

// Returns one line that says that there is no system with the point's name, and lists the known
// ones.
std::string no_such_system(const harness::Point& point, std::span<const std::string_view> known);

// The system of a point. Throws UsageError, which names the known ones, if the table has none.
template <class System>
const System& system_of(const harness::Point& point, std::span<const System> table) {
  std::vector<std::string_view> names;
  for (const System& entry : table) {
    if (info_in(entry).name == point.settings.system.text) return entry;
    names.push_back(info_in(entry).name);
  }
  throw UsageError(no_such_system(point, names));
}

// For Driver::systems.
template <class System>
std::vector<harness::DriverDeclarations::System> declarations_of(std::span<const System> table) {
  std::vector<harness::DriverDeclarations::System> declared;
  for (const System& entry : table) {
    declared.push_back({info_in(entry).name, info_in(entry).parameters, info_in(entry).title});
  }
  return declared;
}

// For Driver::columns: adds the columns of what a system counts.
void add_columns(std::span<const services::Metric> metrics, std::vector<schema::Column>& columns);

// Adds the sums of the metrics to the measurement. Each element of `counted` has the values that
// one session or partition has counted.
void add_counted(std::span<const services::Metric> metrics,
                 std::span<const std::vector<double>> counted, harness::Measurement& result);

// Notes what a server's or a client's thread has thrown: a UsageError stops the sweep, all else
// fails the point. `who` names the thread, as in "server".
void note(std::exception_ptr problem, std::string_view who, harness::Measurement& measurement);

}  // namespace perdura::bench
