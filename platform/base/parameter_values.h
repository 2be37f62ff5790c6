// The values of a table's parameters for one point or one run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/parameter.h"

namespace perdura {

// Using a name that the table does not declare, or a type other than the declared one, is a
// programming error and throws std::logic_error. Ranges are not checked here but where values are
// read from outside.
class ParameterValues {
 public:
  ParameterValues() = default;  // without parameters
  // The table must outlive this and its copies.
  explicit ParameterValues(std::span<const Parameter> table)
      : table_(table), values_(table.size()) {}

  std::span<const Parameter> table() const { return table_; }
  bool declares(std::string_view name) const { return find_parameter(table_, name) != nullptr; }

  // The given value, or else the default.
  std::uint64_t number(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;  // empty if there is neither

  bool given(std::string_view name) const { return value_of(name).has_value(); }
  std::optional<std::uint64_t> number_if_given(std::string_view name) const;
  // Where the value was written, for messages; empty if it was not given.
  const std::string& where(std::string_view name) const;
  // The value as it appears in labels and cells; empty if it was not given and has no default.
  std::string to_text(std::string_view name) const;

  void set(std::string_view name, const ParameterValue& value, std::string where = "");
  void unset(std::string_view name) { values_[index_of(name)].reset(); }

 private:
  struct Given {
    ParameterValue value;
    std::string where;
  };
  std::size_t index_of(std::string_view name) const;
  const std::optional<Given>& value_of(std::string_view name) const {
    return values_[index_of(name)];
  }
  ParameterValue value_or_usual(std::string_view name) const;

  std::span<const Parameter> table_{};
  std::vector<std::optional<Given>> values_{};
};

}  // namespace perdura
