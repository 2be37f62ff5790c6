#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace perdura::measure {

// Statistics over the repetitions of one experiment, in whatever unit the samples have. A
// repetition is one sample; the operations within a run are not independent of each other and
// belong in a Histogram.

struct Summary {
  std::size_t count = 0;
  double mean = 0.0;
  double median = 0.0;
  double standard_deviation =
      0.0;  // sample standard deviation (divisor n - 1); 0 for a single repetition
  double min = 0.0;
  double max = 0.0;
};

// All zeros for no samples.
Summary summarize(std::span<const double> samples);

struct Interval {
  double low;
  double high;
};

// The interval that contains the true mean with the given confidence, such as 0.95, by Student's t
// distribution. Exact if repetitions are independent and normally distributed, and a fair
// approximation if they are not badly skewed. Returns nullopt for fewer than two samples or a
// confidence outside (0, 1).
std::optional<Interval> mean_interval(std::span<const double> samples, double confidence = 0.95);

// The interval that contains the true median with at least the given confidence, whatever the
// distribution: two of the samples themselves, symmetric in rank, chosen by the binomial
// distribution. Returns nullopt if there are too few samples (below six for 0.95).
std::optional<Interval> median_interval(std::span<const double> samples, double confidence = 0.95);

// The ranks of two samples, counted from 1 for the smallest.
struct Ranks {
  std::uint64_t low;
  std::uint64_t high;
};

// The ranks of the samples between which the true percentile lies with at least the given
// confidence, whatever the distribution, if the samples are independent: the number of samples up
// to the percentile is binomial, and at most (1 - confidence) / 2 of it lies beyond either rank.
// Returns nullopt if there are too few samples, and unless 0 < percent < 100 and 0 < confidence <
// 1.
std::optional<Ranks> percentile_ranks(std::uint64_t count, double percent,
                                      double confidence = 0.95);

// The value that a normally distributed quantity with mean 0 and deviation 1 exceeds in absolute
// value with probability 1 - confidence. Precondition: 0 < confidence < 1.
double normal_critical(double confidence);

// The value that a t-distributed quantity with that many degrees of freedom exceeds in absolute
// value with probability 1 - confidence. Preconditions: degrees_of_freedom > 0, 0 < confidence < 1.
double student_t_critical(std::size_t degrees_of_freedom, double confidence);

}  // namespace perdura::measure
