#include "platform/fabric/needs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "platform/base/error.h"

namespace perdura::fabric {

std::string missing(const DeviceNeeds& needs, const Capabilities& device) {
  std::vector<std::string_view> names;
  const auto compare = [&](bool needed, bool has, std::string_view name) {
    if (needed && !has) names.push_back(name);
  };
  compare(needs.write_with_immediate, device.write_with_immediate, "WRITE_WITH_IMM");
  compare(needs.atomics, device.atomics, "atomics");
  compare(needs.extents, device.extents, "registrations of extents");
  compare(needs.appends, device.appends, "APPEND");
  compare(needs.commits, device.commits, "COMMIT");
  compare(needs.flush_persistence, device.flush_persistence, "FLUSH for persistence");
  compare(needs.atomic_write, device.atomic_write, "ATOMIC WRITE");
  return fmt::format("{}", fmt::join(names, " and "));
}

void check_needs(const DeviceNeeds& needs, const Capabilities& device, std::string_view user) {
  const std::string lacking = missing(needs, device);
  if (lacking.empty()) return;
  throw UsageError(
      fmt::format("{} needs {}, which this device does not have{}; choose another device, or use "
                  "platform shm",
                  user, lacking, needs.write_with_immediate ? " (iWARP has none)" : ""));
}

}  // namespace perdura::fabric
