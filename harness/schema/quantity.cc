#include "harness/schema/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace perdura::schema {

std::string Quantity::axis_with_unit() const {
  const std::string shown = shown_unit(unit);
  return shown.empty() ? std::string(axis) : fmt::format("{} ({})", axis, shown);
}

std::string shown_unit(std::string_view unit) {
  if (unit == "us") return "µs";
  if (unit == "ratio" || unit == "none") return "";
  return std::string(unit);
}

std::string capitalized(std::string_view text) {
  std::string result(text);
  if (!result.empty()) {
    result.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(result.front())));
  }
  return result;
}

std::string shown_name(std::string_view value) {
  std::string shown;
  while (true) {
    const auto end = value.find_first_of("-_");
    shown += capitalized(value.substr(0, end));
    if (end == std::string_view::npos) return shown;
    shown += ' ';
    value.remove_prefix(end + 1);
  }
}

std::string shown_workload(std::string_view workload) {
  constexpr std::string_view ycsb = "workload";
  if (workload.size() == ycsb.size() + 1 && workload.starts_with(ycsb)) {
    return "YCSB-" + capitalized(workload.substr(ycsb.size()));
  }
  return capitalized(workload);
}

std::string shown_range(std::string text) {
  const auto hyphen = text.find('-');
  if (hyphen != std::string::npos) text.replace(hyphen, 1, "–");
  return text;
}

std::string shown_number(double number) {
  if (number == 0) return "0";
  if (std::isinf(number)) return "∞";
  if (std::abs(number) >= 1000) return fmt::format("{:.0f}", number);
  if (std::abs(number) >= 100) return fmt::format("{:.1f}", number);
  if (std::abs(number) < 0.1) return fmt::format("{:.2g}", number);
  return fmt::format("{:.2f}", number);
}

}  // namespace perdura::schema
