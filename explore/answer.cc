#include "explore/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "explore/explored.h"

namespace perdura::explore {

using services::GuaranteeLevel;

GuaranteeLevel Answer::level() const { return std::min(found, known.value_or(found)); }

std::string Answer::beside_what_is_known(const std::string& tried) const {
  const std::string below =
      found == GuaranteeLevel::durable ? "" : fmt::format(" below {}", to_string(found));
  return fmt::format(
      "nothing{} found in {}; {} is known from the committed explorations, which looked closer "
      "(explored.csv, revision {})",
      below, tried, to_string(level()), explored_revision());
}

Answer answer_of(const services::SystemInfo& system, const services::CrashSetup& setup,
                 GuaranteeLevel found) {
  const auto cell = explored_cell(system, setup.parameters, setup.correct, setup.model);
  return {found, cell ? cell->level : std::nullopt};
}

Answer answer_of(const services::SystemInfo& system, const CrashOptions& options,
                 const CrashResult& result) {
  if (!options.fails.are_of_all_power()) return {result.strongest(), std::nullopt};
  return answer_of(system, options.setup, result.strongest());
}

}  // namespace perdura::explore
