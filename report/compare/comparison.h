// Compares two runs point by point and decides whether the second is worse.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/statistics.h"
#include "report/compare/matching.h"

namespace perdura::compare {

struct Options {
  double threshold_percent = 2;  ///< smaller changes count as none, however significant
  double alpha = 0.01;           ///< probability of any false alarm among all comparisons
};

/// `undecided`: there are too few repetitions to reach significance at alpha, whatever their
/// values. `unclear`: the runs differ by more than the threshold, but not significantly.
/// `unchanged`: they differ by no more than the threshold.
enum class ChangeKind { worse, undecided, unclear, unchanged, better };
std::string_view to_string(ChangeKind change);

/// One quantity of one point.
struct QuantityComparison {
  Point point;
  std::string quantity;
  std::size_t repetitions_a = 0;
  std::size_t repetitions_b = 0;
  double a = 0;  ///< median over the repetitions, in the column's unit
  double b = 0;  ///< the same
  /// The factor from a to b (shift_factor). If a repetition is 0, the ratio of the medians: 1 if
  /// both are 0, infinite if only a is.
  double ratio = 1;
  std::optional<measure::Interval> interval{};  ///< of the ratio, 95 %; see ratio_interval
  std::optional<double> p{};  ///< corrected for the number of tests; nullopt if not tested
  ChangeKind change = ChangeKind::unchanged;
};

/// The change from a to b in percent of a.
double change_percent(const QuantityComparison& entry);

struct Comparison {
  Matching matching{};
  Options options{};
  std::vector<QuantityComparison> entries{};  ///< worse ones first, then by how much worse b is
  std::size_t tested = 0;  ///< entries tested by the U test; p is corrected for this number
  /// Simulated points with the same seeds have no noise; those with too few repetitions for a test
  /// are compared by the threshold alone.
  std::size_t by_threshold = 0;
  std::size_t repetitions_needed = 0;  ///< in each run, for alpha among all comparisons

  std::size_t count(ChangeKind change) const;
  /// The number of points that b lost. With `ignore_missing`, points that are missing from b do
  /// not count, for comparing different sweeps on purpose.
  std::size_t lost(bool ignore_missing) const;
};

Comparison compare(Matching matching, const Options& options);

}  // namespace perdura::compare
