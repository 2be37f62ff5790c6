// Declarations of the parameters that an experiment, or a program, may give to a part of this
// project: a benchmark driver or a system. Each part declares its parameters once, in a table.
// Reading files and command lines, checking, defaults, labels, columns of results and listings are
// derived from the table alone.
//
//   constexpr Parameter kParameters[] = {
//       {.name = "clients", .type = Count{1, 65535}, .usual = 1, .identifies = true},
//       {.name = "load", .type = OneOf{kLoads}, .usual = "closed", .identifies = true},
//       {.name = "until_full", .type = Flag{}, .usual = false},
//   };
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace perdura {

// The types of parameters, with the values that each may have.
struct Count {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::int64_t>::max();  // the largest integer of TOML
};
struct Share {};  // a decimal number above 0, at most 1
struct Real {
  double least = 0;
  double most = 0;
};
struct Flag {};  // true or false, also written 1 or 0
struct OneOf {
  std::span<const std::string_view> words;
};
struct Name {};  // the name of something that the declaring part looks up
using ParameterType = std::variant<Count, Share, Real, Flag, OneOf, Name>;

// A value of any type.
class ParameterValue {
 public:
  ParameterValue() = default;
  ParameterValue(bool value) : value_(value) {}
  template <std::integral Number>
  ParameterValue(Number value) : value_(static_cast<std::uint64_t>(value)) {}
  ParameterValue(double value) : value_(value) {}
  ParameterValue(std::string value) : value_(std::move(value)) {}
  ParameterValue(std::string_view value) : value_(std::string(value)) {}
  ParameterValue(const char* value) : value_(std::string(value)) {}

  // Each throws std::logic_error if the value is of another type. number() also takes a flag, as 0
  // or 1.
  std::uint64_t number() const;
  double real() const;
  bool flag() const;
  const std::string& text() const;

  bool is_number() const { return std::holds_alternative<std::uint64_t>(value_); }
  bool is_real() const { return std::holds_alternative<double>(value_); }
  bool is_flag() const { return std::holds_alternative<bool>(value_); }
  bool is_text() const { return std::holds_alternative<std::string>(value_); }

  // The value as it appears in labels and cells: 64, 0.02, true, closed.
  std::string to_text() const;

  // A flag equals the number that it may be written as.
  bool operator==(const ParameterValue& other) const;

 private:
  std::variant<std::uint64_t, double, bool, std::string> value_;
};

// The values given for parameters of a table, by name.
using GivenParameters = std::map<std::string, ParameterValue, std::less<>>;

// The default value of a parameter, as a literal type; may be absent.
class UsualValue {
 public:
  constexpr UsualValue() = default;
  constexpr UsualValue(bool value) : value_(value) {}
  template <std::integral Number>
  constexpr UsualValue(Number value) : value_(static_cast<std::uint64_t>(value)) {}
  constexpr UsualValue(double value) : value_(value) {}
  constexpr UsualValue(const char* value) : value_(std::string_view(value)) {}

  constexpr bool exists() const { return !std::holds_alternative<std::monostate>(value_); }
  // Throws std::logic_error if there is none.
  ParameterValue value() const;

 private:
  std::variant<std::monostate, std::uint64_t, double, bool, std::string_view> value_;
};

struct Parameter {
  // Another parameter without which this one has no effect.
  struct Need {
    std::string_view parameter;
    std::string_view what;  // its role: "the most operations before the measured ones"
  };

  std::string_view name;
  ParameterType type;
  UsualValue usual{};  // default; if absent, the default depends on other parameters
  // For a driver's parameter: it is part of a point's identity, so results have a column for it,
  // and a sweep may vary it.
  bool identifies = false;
  std::string_view noun{};   // the column's name in a sentence: "queue depth"; see columns.h
  std::string_view title{};  // its title; on an axis, without the unit: "Operations in flight"
  std::string_view unit{};   // bytes, us; empty: a count
  std::string_view what{};   // the parameter's effect, in a phrase
  std::array<Need, 2> needs{};
  bool sets_time = false;  // a point's duration is not proportional to its operations

  // "must be a whole number from 1 to 5", if the parameter cannot have the value; otherwise empty.
  std::string problem_with(const ParameterValue& value) const;
  // The value converted to the parameter's type: 1 becomes true for a flag, 1.0 for a real number.
  ParameterValue of_type(ParameterValue value) const;
  // "whole number, 1 to 65535", "\"on\" or \"off\"".
  std::string type_in_words() const;
};

// Returns null if the table has none of that name.
const Parameter* find_parameter(std::span<const Parameter> table, std::string_view name);
// The names of a table's parameters, in its order.
std::vector<std::string_view> names_of(std::span<const Parameter> table);

}  // namespace perdura
