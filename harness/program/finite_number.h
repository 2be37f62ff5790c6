// Validates a number on the command line, from `low` to `high`. Anything else is rejected with a
// short message of one line, including NaN, which compares false with everything.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

namespace perdura::harness {

inline CLI::Validator finite_number(double low, double high) {
  const auto check = [low, high](const std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= low && value <= high) {
      return std::string();
    }
    return fmt::format("must be a number from {} to {}, not '{}'", low, high, text);
  };
  return {check, fmt::format("{} to {}", low, high)};
}

}  // namespace perdura::harness
