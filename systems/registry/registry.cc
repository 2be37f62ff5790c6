// The table of systems. A new one is a folder and a line here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "platform/base/error.h"
#include "systems/continuity/continuity.h"
#include "systems/erda/erda.h"
#include "systems/kv.h"
#include "systems/level/level.h"
#include "systems/pfarm/pfarm.h"
#include "systems/read_after_write/read_after_write.h"
#include "systems/redo_logging/redo_logging.h"

namespace perdura::systems {

std::span<const KvSystem> kv_systems() {
  static const std::array table{
      kErda, kRedoLogging, kReadAfterWrite, kContinuity, kLevel, kPFarmKv,
  };
  return table;
}

const KvSystem& find_kv_system(std::string_view name) {
  const std::span<const KvSystem> table = kv_systems();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const KvSystem& system) { return system.name == name; });
  if (found != table.end()) return *found;
  std::vector<std::string_view> names;
  for (const KvSystem& system : table) names.push_back(system.name);
  throw UsageError(fmt::format("unknown system '{}'; known are: {}", name, fmt::join(names, ", ")));
}

std::string_view to_string(Error error) {
  switch (error) {
    case Error::not_found:
      return "not found";
    case Error::out_of_space:
      return "out of space";
    case Error::too_large:
      return "too large";
    case Error::corrupt:
      return "corrupt";
    case Error::disconnected:
      return "disconnected";
  }
  return "unknown error";
}

}  // namespace perdura::systems
