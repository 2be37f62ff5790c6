// Nonparametric statistics that decide from few repetitions whether two runs differ.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "harness/measure/statistics.h"

namespace perdura::compare {

struct MannWhitney {
  double u = 0;  // pairs (sample of a, sample of b) with a > b; equal ones count half
  double p = 1;  // two-sided: probability of a U this far from its mean if a and b do not differ
  bool exact = false;  // p was computed by counting, not by the normal distribution
};

// The U test of Mann and Whitney. Up to 50 samples in total, p counts all ways to divide the
// samples, including equal ones, and is twice the smaller tail; above, it comes from the normal
// distribution with corrections for ties and continuity. p is 1 if either side is empty.
MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b);

// The smallest p possible with these numbers of samples: every sample of one side is above every
// one of the other.
double smallest_p(std::size_t a, std::size_t b);

// The number of samples that each side needs so that smallest_p() is at most alpha after correction
// for `comparisons` comparisons. Precondition: alpha > 0.
std::size_t repetitions_needed(double alpha, std::size_t comparisons);

// The factor by which b differs from a, by the estimator of Hodges and Lehmann: the median of the
// ratios of all pairs of samples (the geometric mean of the two middle ones if their number is
// even). Always within ratio_interval(). Returns nullopt if some sample is not positive or a side
// is empty.
std::optional<double> shift_factor(std::span<const double> a, std::span<const double> b);

// The 95 % confidence interval of the factor by which b differs from a, if they differ only by a
// factor: the ratios of all pairs of samples at which the U test would begin to tell the two apart.
// Returns nullopt if some sample is not positive, or there are too few to exclude any factor (below
// four on each side).
std::optional<measure::Interval> ratio_interval(std::span<const double> a,
                                                std::span<const double> b);

// The p values of several tests, corrected by Holm's method: if each is compared with alpha, the
// probability of any false alarm among them is at most alpha.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace perdura::compare
