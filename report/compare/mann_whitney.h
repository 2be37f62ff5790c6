// Nonparametric statistics that decide from few repetitions whether two runs differ.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "harness/measure/statistics.h"

namespace perdura::compare {

struct MannWhitney {
  double u = 0;  // pairs of a sample of a and one of b with a > b; equal ones count half
  double p = 1;  // two-sided: how likely a U as far from its mean is, if a and b do not differ
  bool exact = false;  // by counting; otherwise by the normal distribution
};

// The U test of Mann and Whitney. Up to 50 samples in all, p counts all ways to divide the samples,
// equal ones included, and is twice the smaller tail; above, it is that of the normal distribution
// with corrections for ties and continuity. p is 1 if either side is empty.
MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b);

// The smallest p that so many samples can have: every sample of one above every one of the other.
double smallest_p(std::size_t a, std::size_t b);

// How many samples each side needs so that smallest_p() is at most alpha after correction for
// `comparisons` comparisons. Precondition: alpha > 0.
std::size_t repetitions_needed(double alpha, std::size_t comparisons);

// The factor by which b differs from a, as Hodges and Lehmann estimate it: the median of the ratios
// of all pairs of samples, of their logarithms if it lies between two. The estimate that belongs to
// ratio_interval, and never outside of it. Nothing if some sample is not positive or a side empty.
std::optional<double> shift_factor(std::span<const double> a, std::span<const double> b);

// The 95 % confidence interval of the factor by which b differs from a, if they differ by a factor
// and are alike otherwise: the ratios of all pairs of samples at which the U test would begin to
// tell the two apart. Nothing if some sample is not positive, or there are too few to exclude any
// factor (below four of each).
std::optional<measure::Interval> ratio_interval(std::span<const double> a,
                                                std::span<const double> b);

// The p of several tests, corrected by Holm's method so that the probability of any false alarm
// among them is at most alpha where each is compared with alpha.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace perdura::compare
