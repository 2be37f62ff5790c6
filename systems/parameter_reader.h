// Reads the values given for a system's own parameters, according to the table in which the system
// declares them. Errors are thrown as ParameterError with one line that begins with the system's
// name.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "platform/base/error.h"
#include "platform/base/parameter_values.h"

namespace perdura::systems {

// Names the parameter, so that a caller that knows where it was written can add the place.
struct ParameterError : UsageError {
  ParameterError(std::string_view of, const std::string& message)
      : UsageError(message), parameter(of) {}
  std::string parameter;
};

class ParameterReader {
 public:
  // Throws if `given` has a parameter that the table does not declare, or a value that its
  // declaration does not allow.
  ParameterReader(std::string_view system, std::span<const Parameter> table,
                  const GivenParameters& given);

  // The given value, else the default.
  template <std::unsigned_integral Number>
  Number number(std::string_view name) const {
    return static_cast<Number>(values_.number(name));
  }
  bool flag(std::string_view name) const { return values_.flag(name); }
  double real(std::string_view name) const { return values_.real(name); }
  std::string text(std::string_view name) const { return values_.text(name); }

  // The given value, else `otherwise`: for a parameter whose default depends on others. Throws
  // unless the value is in [`least`, `most`], which may be narrower than the range in the table.
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

  // Returns nullopt if it is not given.
  std::optional<std::uint64_t> number_if_given(std::string_view name) const {
    return values_.number_if_given(name);
  }

  // Throws unless `value`, the configuration's value of `what`, is in [`least`, `most`].
  void require_within(std::string_view what, std::uint64_t value, std::uint64_t least,
                      std::uint64_t most) const;

 private:
  std::string_view system_;
  ParameterValues values_;
};

}  // namespace perdura::systems
