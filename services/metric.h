// What a system counts of itself, beside what is measured of every system: declared in its entry of
// the table, and carried from there to results, figures and comparisons under its name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace perdura::services {

struct Metric {
  // Of the column. One that ends in `_per_op` is divided by the operations of the measured
  // interval; any other is the sum over all sessions or partitions.
  std::string_view name;
  std::string_view noun;   // in a sentence: "log laps"
  std::string_view title;  // on an axis: "Laps of the log"
  std::string_view unit{};
};

// The values of the same metrics, added to those of others of the same system.
inline void add_metrics(std::span<const double> values, std::vector<double>& sums) {
  if (sums.size() < values.size()) sums.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
}

}  // namespace perdura::services
