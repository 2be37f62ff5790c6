#include "harness/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace perdura::measure {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

// The probability that |t| stays below the given value: the finite series for whole degrees of
// freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
double student_t_inside(double t, std::size_t degrees_of_freedom) {
  const double nu = static_cast<double>(degrees_of_freedom);
  const double angle = std::atan(t / std::sqrt(nu));
  const double cosine = std::cos(angle);
  const bool is_odd = degrees_of_freedom % 2 != 0;

  double term = is_odd ? cosine : 1.0;
  double series = 0.0;
  for (std::size_t k = is_odd ? 1 : 0; k + 2 <= degrees_of_freedom; k += 2) {
    series += term;
    const double next = static_cast<double>(k);
    term *= cosine * cosine * (next + 1) / (next + 2);
  }
  if (!is_odd) return std::sin(angle) * series;
  return (angle + std::sin(angle) * series) * 2.0 / std::numbers::pi;
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
    // Deviations from the mean, not the difference of two large sums, which would cancel.
    double squares = 0.0;
    for (double sample : ordered) squares += (sample - summary.mean) * (sample - summary.mean);
    summary.standard_deviation = std::sqrt(squares / (count - 1));
  }
  return summary;
}

double student_t_critical(std::size_t degrees_of_freedom, double confidence) {
  double low = 0.0;
  double high = 1.0;
  while (std::isfinite(high) && student_t_inside(high, degrees_of_freedom) < confidence) high *= 2;
  // Bisection down to neighboring numbers: about sixty rounds, and no choice of a tolerance.
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (student_t_inside(middle, degrees_of_freedom) < confidence ? low : high) = middle;
  }
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
  const double count = static_cast<double>(ordered.size());
  // The number of samples below the median is binomial with probability 1/2. The interval from the
  // (k+1)-th smallest to the (k+1)-th largest misses the median if at most k samples lie on one of
  // its sides; k is the largest for which both tails together stay below 1 - confidence.
  // Logarithms, because 2^-n is no normal number for thousands of samples.
  double tail = 0.0;
  std::size_t outside = 0;
  for (std::size_t k = 0; 2 * k + 1 < ordered.size(); ++k) {
    const double place = static_cast<double>(k);
    tail += std::exp(std::lgamma(count + 1) - std::lgamma(place + 1) -
                     std::lgamma(count - place + 1) - count * std::numbers::ln2);
    if (2 * tail > 1 - confidence) break;
    outside = k + 1;
  }
  if (outside == 0) return std::nullopt;
  return Interval{ordered[outside - 1], ordered[ordered.size() - outside]};
}

}  // namespace perdura::measure
