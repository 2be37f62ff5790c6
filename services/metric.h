// The quantities that a system counts in addition to those measured for every system. Metrics are
// declared in the system's entry of the table, and appear under their names in results, figures and
// comparisons.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace perdura::services {

struct Metric {
  // The name of the column. The value of a metric whose name ends in `_per_op` is divided by the
  // number of operations of the measured interval. Any other value is the sum over all sessions or
  // partitions.
  std::string_view name;
  std::string_view noun;   // in a sentence: "log laps"
  std::string_view title;  // on an axis: "Laps of the log"
  std::string_view unit{};
};

// Adds the values of a system's metrics to the sums of the same metrics.
inline void add_metrics(std::span<const double> values, std::vector<double>& sums) {
  if (sums.size() < values.size()) sums.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
}

// The increase of each metric since its value in `before`.
inline std::vector<double> metrics_since(std::vector<double> now, std::span<const double> before) {
  for (std::size_t i = 0; i < before.size(); ++i) now[i] -= before[i];
  return now;
}

}  // namespace perdura::services
