// The values that one point, or one run of anything, has for the parameters of a table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/parameter.h"

namespace perdura {

// A name that the table does not declare, and a value of another type than declared, are mistakes
// of the program: std::logic_error. Ranges are not checked here; whoever reads a value from outside
// does.
class ParameterValues {
 public:
  ParameterValues() = default;  // of no parameters
  // The table must outlive this and its copies.
  explicit ParameterValues(std::span<const Parameter> table)
      : table_(table), values_(table.size()) {}

  std::span<const Parameter> table() const { return table_; }
  bool declares(std::string_view name) const { return find_parameter(table_, name) != nullptr; }

  // What was given, else what is usual.
  std::uint64_t number(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;  // empty if neither

  bool given(std::string_view name) const { return value_of(name).has_value(); }
  std::optional<std::uint64_t> number_if_given(std::string_view name) const;
  // Where it was written, for messages; empty if nobody has.
  const std::string& where(std::string_view name) const;
  // As in labels and cells; empty if it was neither given nor has a usual value.
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
