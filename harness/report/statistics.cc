#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/report/figure_data.h"

namespace perdura::report {
namespace {

// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
constexpr std::array<double, 30> student_t{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                           2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                           2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                           2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

double quantile(std::size_t degrees_of_freedom) {
  if (degrees_of_freedom <= student_t.size()) return student_t[degrees_of_freedom - 1];
  return 1.960 + 2.372 / static_cast<double>(degrees_of_freedom);  // first term of the expansion
}

}  // namespace

double confidence_half_width(const std::vector<double>& samples) {
  if (samples.size() < 2) return 0;
  const auto count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return quantile(samples.size() - 1) * std::sqrt(squares / (count - 1) / count);
}

Averages average_over_x(const FigureData& data) {
  Averages averages;
  averages.total = data.xs.size();
  for (const std::string& x : data.xs) {
    bool everywhere = true;
    for (const Series& series : data.series) {
      if (data.find(series.name, x) == nullptr) everywhere = false;
    }
    if (!everywhere) continue;
    ++averages.used;
    for (const Series& series : data.series) {
      averages.by_series[series.name] += data.find(series.name, x)->mean;
    }
  }
  for (auto& [name, sum] : averages.by_series) sum /= static_cast<double>(averages.used);
  return averages;
}

}  // namespace perdura::report
