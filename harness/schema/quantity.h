#pragma once

#include <string>
#include <string_view>

namespace perdura::report {

/// How a column of points.csv is shown to people.
struct Quantity {
  std::string noun;  ///< in a sentence: "average latency"
  std::string axis;  ///< without the unit: "Mean latency"
  std::string unit;  ///< as in results/reported: us, kop/s, bytes; empty: a count
  double scale = 1;  ///< a cell times this is in `unit`

  std::string axis_with_unit() const;
};

Quantity quantity_of(std::string_view column);

/// The unit as people write it: us is µs, ratio and none are nothing.
std::string shown_unit(std::string_view unit);

/// A system's name, or any other value of a column: redo-logging is "Redo Logging", 1024 is "1024".
std::string shown_name(std::string_view value);

/// A value of any column: of those that name a responder's configuration in their usual spelling.
std::string shown_value(std::string_view column, std::string_view value);

/// workloada is "YCSB-A", update-only is "Update-only".
std::string shown_workload(std::string_view workload);

/// Starts with a capital letter.
std::string capitalized(std::string text);

/// "22-25" is "22–25", with a dash.
std::string shown_range(std::string text);

/// Two decimals below 1000, none above; infinity is "∞".
std::string shown_number(double number);

}  // namespace perdura::report
