#include "harness/measure/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

namespace perdura::measure {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  const std::vector<double> ordered = sorted(samples);
  const double count = static_cast<double>(ordered.size());

  Summary summary;
  summary.count = ordered.size();
  summary.min = ordered.front();
  summary.max = ordered.back();
  summary.mean = std::accumulate(ordered.begin(), ordered.end(), 0.0) / count;
  const std::size_t half = ordered.size() / 2;
  summary.median = ordered.size() % 2 != 0
                       ? ordered[half]
                       : ordered[half - 1] + (ordered[half] - ordered[half - 1]) / 2;
  if (ordered.size() > 1) {
    // Sums squared deviations from the mean, since the difference of two large sums would lose
    // digits.
    double squares = 0.0;
    for (double sample : ordered) squares += (sample - summary.mean) * (sample - summary.mean);
    summary.standard_deviation = std::sqrt(squares / (count - 1));
  }
  return summary;
}

double normal_critical(double confidence) {
  return quantile(complement(boost::math::normal(), (1 - confidence) / 2));
}

double student_t_critical(std::size_t degrees_of_freedom, double confidence) {
  const boost::math::students_t distribution(static_cast<double>(degrees_of_freedom));
  return quantile(complement(distribution, (1 - confidence) / 2));
}

std::optional<Interval> mean_interval(std::span<const double> samples, double confidence) {
  if (samples.size() < 2 || !(confidence > 0 && confidence < 1)) return std::nullopt;
  const Summary summary = summarize(samples);
  const double margin = student_t_critical(summary.count - 1, confidence) *
                        summary.standard_deviation / std::sqrt(static_cast<double>(summary.count));
  return Interval{summary.mean - margin, summary.mean + margin};
}

std::optional<Interval> median_interval(std::span<const double> samples, double confidence) {
  if (samples.empty() || !(confidence > 0 && confidence < 1)) return std::nullopt;
  const std::vector<double> ordered = sorted(samples);
  const auto ranks = percentile_ranks(ordered.size(), 50, confidence);
  if (!ranks) return std::nullopt;
  return Interval{ordered[ranks->low - 1], ordered[ranks->high - 1]};
}

std::optional<Ranks> percentile_ranks(std::uint64_t count, double percent, double confidence) {
  if (count == 0 || !(percent > 0 && percent < 100) || !(confidence > 0 && confidence < 1)) {
    return std::nullopt;
  }
  // Exact for any number of samples: the smallest counts of samples up to the percentile such that
  // at most `tail` lies beyond them.
  using boost::math::policies::discrete_quantile, boost::math::policies::integer_round_up;
  using UpwardQuantiles = boost::math::policies::policy<discrete_quantile<integer_round_up>>;
  const double n = static_cast<double>(count);
  const boost::math::binomial_distribution<double, UpwardQuantiles> up_to_it(n, percent / 100);
  const double tail = (1 - confidence) / 2;
  const double low = quantile(up_to_it, tail);
  // If k or more samples lie up to the percentile, so does the k-th smallest.
  const double high = quantile(complement(up_to_it, tail)) + 1;
  if (low < 1 || high > n) return std::nullopt;
  return Ranks{static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)};
}

}  // namespace perdura::measure
