#include "platform/base/parameter_values.h"

#include <fmt/format.h>

#include <stdexcept>

namespace perdura {

std::size_t ParameterValues::index_of(std::string_view name) const {
  const Parameter* const parameter = find_parameter(table_, name);
  if (parameter == nullptr)
    throw std::logic_error(fmt::format("no parameter {} is declared", name));
  return static_cast<std::size_t>(parameter - table_.data());
}

ParameterValue ParameterValues::value_or_usual(std::string_view name) const {
  const std::size_t index = index_of(name);
  return values_[index] ? values_[index]->value : table_[index].usual.value();
}

std::uint64_t ParameterValues::number(std::string_view name) const {
  return value_or_usual(name).number();
}

double ParameterValues::real(std::string_view name) const { return value_or_usual(name).real(); }

bool ParameterValues::flag(std::string_view name) const { return value_or_usual(name).flag(); }

std::string ParameterValues::text(std::string_view name) const {
  if (!given(name) && !table_[index_of(name)].usual.exists()) return "";
  return value_or_usual(name).text();
}

std::optional<std::uint64_t> ParameterValues::number_if_given(std::string_view name) const {
  const auto& given = value_of(name);
  return given ? std::optional(given->value.number()) : std::nullopt;
}

const std::string& ParameterValues::where(std::string_view name) const {
  static const std::string nowhere;
  const auto& given = value_of(name);
  return given ? given->where : nowhere;
}

std::string ParameterValues::to_text(std::string_view name) const {
  if (!given(name) && !table_[index_of(name)].usual.exists()) return "";
  return value_or_usual(name).to_text();
}

void ParameterValues::set(std::string_view name, const ParameterValue& value, std::string where) {
  const std::size_t index = index_of(name);
  values_[index] = Given{table_[index].of_type(value), std::move(where)};
}

}  // namespace perdura
