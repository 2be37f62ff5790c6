// Reads what a system was given of its own parameters by the table in which it declares them.
// What is wrong throws ParameterError, with one line that begins with the system's name.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "platform/base/error.h"
#include "platform/base/parameter_values.h"

namespace perdura::systems {

// Names the parameter, so that whoever knows where it was written can say it.
struct ParameterError : UsageError {
  ParameterError(std::string_view of, const std::string& message)
      : UsageError(message), parameter(of) {}
  std::string parameter;
};

class ParameterReader {
 public:
  // Throws if there is a parameter that the table does not declare, or a value that it
  // cannot have.
  ParameterReader(std::string_view system, std::span<const Parameter> table,
                  const GivenParameters& given);

  // What was given, else what is usual.
  template <std::unsigned_integral Number>
  Number number(std::string_view name) const {
    return static_cast<Number>(values_.number(name));
  }
  bool flag(std::string_view name) const { return values_.flag(name); }
  double real(std::string_view name) const { return values_.real(name); }
  std::string text(std::string_view name) const { return values_.text(name); }

  // What was given, else `otherwise`, of a parameter whose usual value depends on others. Throws
  // unless it is `least` to `most`, which may be closer than what the table says.
  template <std::unsigned_integral Number>
  Number number(std::string_view name, Number otherwise, std::uint64_t least,
                std::uint64_t most) const {
    const std::uint64_t value = values_.number_if_given(name).value_or(otherwise);
    require_within(name, value, least, most);
    return static_cast<Number>(value);
  }
  template <std::unsigned_integral Number>
  Number number(std::string_view name, Number otherwise) const {
    return static_cast<Number>(values_.number_if_given(name).value_or(otherwise));
  }

  // Throws unless what the configuration says of something else is `least` to `most`.
  void require_within(std::string_view what, std::uint64_t value, std::uint64_t least,
                      std::uint64_t most) const;

 private:
  std::string_view system_;
  ParameterValues values_;
};

}  // namespace perdura::systems
