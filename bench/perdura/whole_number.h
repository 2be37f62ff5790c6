// Validates a whole number on the command line, from `low` to `high`; anything else is rejected
// with a short message of one line.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace perdura::harness {

inline CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  const auto check = [low, high](const std::string& text) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= low && value <= high) {
      return std::string();
    }
    return fmt::format("must be a whole number from {} to {}, not '{}'", low, high, text);
  };
  return {check, fmt::format("{} to {}", low, high)};
}

// The same, or a word.
inline CLI::Validator whole_number_or(std::uint64_t low, std::uint64_t high, std::string word) {
  const CLI::Validator number = whole_number(low, high);
  const std::string description = fmt::format("{} to {}, {}", low, high, word);
  const auto check = [number, word = std::move(word)](std::string& text) {
    if (text == word) return std::string();
    const std::string problem = number(text);
    return problem.empty() ? problem : fmt::format("{} or '{}'", problem, word);
  };
  return {check, description};
}

}  // namespace perdura::harness
