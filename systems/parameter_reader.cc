#include "systems/parameter_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::systems {

ParameterReader::ParameterReader(std::string_view system, const KvConfig& config,
                                 std::initializer_list<std::string_view> known)
    : system_(system), config_(config) {
  for (const auto& [name, value] : config.parameters) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ParameterError(name, fmt::format("{} has no parameter '{}'; it has {}", system, name,
                                           fmt::join(known, ", ")));
  }
}

std::uint64_t ParameterReader::checked(std::string_view name, std::uint64_t otherwise,
                                       std::uint64_t least, std::uint64_t most) const {
  const auto given = config_.parameters.find(name);
  const std::uint64_t value = given == config_.parameters.end() ? otherwise : given->second;
  require_within(name, value, least, most);
  return value;
}

void ParameterReader::require_within(std::string_view what, std::uint64_t value,
                                     std::uint64_t least, std::uint64_t most) const {
  if (value >= least && value <= most) return;
  throw ParameterError(
      what, fmt::format("{}: {} is {}, but must be {} to {}", system_, what, value, least, most));
}

}  // namespace perdura::systems
