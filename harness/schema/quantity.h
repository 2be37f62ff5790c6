#pragma once

#include <string>
#include <string_view>

namespace perdura::schema {

/// How a column is shown to people.
struct Quantity {
  std::string_view noun;  ///< in a sentence: "average latency"
  std::string_view axis;  ///< without its unit: "Mean latency"
  std::string_view unit;  ///< as in results/reported: us, kop/s, bytes; empty: a count
  double scale = 1;       ///< a cell times this is in `unit`

  std::string axis_with_unit() const;
};

/// How a value of a column is shown: dmp is "DMP".
struct Spelling {
  std::string_view value;
  std::string_view shown;
};

/// The unit as people write it: us is µs; ratio and none are "".
std::string shown_unit(std::string_view unit);

/// The shown form of a name without a title: redo-logging is "Redo Logging", 1024 is "1024".
std::string shown_name(std::string_view value);

/// workloada is "YCSB-A", update-only is "Update-only".
std::string shown_workload(std::string_view workload);

/// The text with a capital first letter.
std::string capitalized(std::string_view text);

/// "22-25" is "22–25", with a dash.
std::string shown_range(std::string text);

/// Two decimals below 1000, none above; infinity is "∞".
std::string shown_number(double number);

}  // namespace perdura::schema
