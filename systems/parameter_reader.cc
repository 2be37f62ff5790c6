#include "systems/parameter_reader.h"

#include <fmt/format.h>

namespace perdura::systems {

ParameterReader::ParameterReader(std::string_view system, std::span<const Parameter> table,
                                 const GivenParameters& given)
    : system_(system), values_(table) {
  for (const auto& [name, value] : given) {
    const Parameter* const parameter = find_parameter(table, name);
    if (parameter == nullptr) {
      throw ParameterError(name, fmt::format("{} has no parameter '{}'; it has {}", system, name,
                                             fmt::join(names_of(table), ", ")));
    }
    if (const std::string problem = parameter->problem_with(value); !problem.empty()) {
      throw ParameterError(
          name, fmt::format("{}: {} is {}, but {}", system, name, value.to_text(), problem));
    }
    values_.set(name, value);
  }
}

void ParameterReader::require_within(std::string_view what, std::uint64_t value,
                                     std::uint64_t least, std::uint64_t most) const {
  if (value >= least && value <= most) return;
  throw ParameterError(
      what, fmt::format("{}: {} is {}, but must be {} to {}", system_, what, value, least, most));
}

}  // namespace perdura::systems
