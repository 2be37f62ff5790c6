#include "report/compare/comparison.h"

#include <algorithm>
#include <limits>

#include "report/compare/mann_whitney.h"

namespace perdura::compare {
namespace {

double ratio_of(double b, double a) {
  if (a == b) return 1;
  return a == 0 ? std::numeric_limits<double>::infinity() : b / a;
}

/// How much worse b is, in percent; negative: better.
double worsening_percent(const QuantityComparison& entry, const schema::Schema& schema) {
  const double change = change_percent(entry);
  const bool more_is_better = schema.find(entry.quantity)->better == schema::Column::Better::more;
  return more_is_better ? -change : change;
}

QuantityComparison entry_of(const Pair& pair) {
  QuantityComparison entry{.point = pair.point,
                           .quantity = pair.quantity,
                           .repetitions_a = pair.a.size(),
                           .repetitions_b = pair.b.size(),
                           .a = measure::summarize(pair.a).median,
                           .b = measure::summarize(pair.b).median};
  entry.ratio = shift_factor(pair.a, pair.b).value_or(ratio_of(entry.b, entry.a));
  entry.interval = ratio_interval(pair.a, pair.b);
  return entry;
}

ChangeKind beyond_threshold(const QuantityComparison& entry, const schema::Schema& schema,
                            double threshold_percent) {
  const double worsening = worsening_percent(entry, schema);
  if (worsening > threshold_percent) return ChangeKind::worse;
  return worsening < -threshold_percent ? ChangeKind::better : ChangeKind::unchanged;
}

}  // namespace

std::string_view to_string(ChangeKind change) {
  switch (change) {
    case ChangeKind::worse:
      return "worse";
    case ChangeKind::undecided:
      return "undecided";
    case ChangeKind::unclear:
      return "unclear";
    case ChangeKind::unchanged:
      return "unchanged";
    case ChangeKind::better:
      return "better";
  }
  return "undecided";
}

double change_percent(const QuantityComparison& entry) { return (entry.ratio - 1) * 100; }

std::size_t Comparison::count(ChangeKind change) const {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(),
                    [change](const QuantityComparison& entry) { return entry.change == change; }));
}

std::size_t Comparison::lost(bool ignore_missing) const {
  return static_cast<std::size_t>(std::count_if(
      matching.lost.begin(), matching.lost.end(),
      [ignore_missing](const Lost& each) { return !(ignore_missing && each.missing()); }));
}

Comparison compare(Matching matching, const Options& options) {
  Comparison comparison{.matching = std::move(matching), .options = options};
  std::vector<Pair>& pairs = comparison.matching.pairs;
  comparison.repetitions_needed = repetitions_needed(options.alpha, pairs.size());

  // The numbers of repetitions alone determine if a test can reach significance, not the data.
  // Tests that cannot may therefore be left out of the correction, which makes it less strict for
  // the others.
  std::vector<std::size_t> tested;
  std::vector<double> p;
  comparison.entries.reserve(pairs.size());
  for (Pair& pair : pairs) {
    QuantityComparison& entry = comparison.entries.emplace_back(entry_of(pair));
    const double smallest = smallest_p(pair.a.size(), pair.b.size());
    if (smallest * static_cast<double>(pairs.size()) <= options.alpha) {
      tested.push_back(comparison.entries.size() - 1);
      p.push_back(mann_whitney(pair.a, pair.b).p);
    } else if (comparison.matching.modelled && pair.same_draws) {
      entry.change = beyond_threshold(entry, comparison.matching.schema, options.threshold_percent);
      ++comparison.by_threshold;
    } else {
      entry.change = ChangeKind::undecided;
    }
    // The entry already has the results that are computed from the samples.
    pair.a = {};
    pair.b = {};
  }
  comparison.tested = tested.size();
  const std::vector<double> corrected = holm(p);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    QuantityComparison& entry = comparison.entries[tested[i]];
    entry.p = corrected[i];
    entry.change = beyond_threshold(entry, comparison.matching.schema, options.threshold_percent);
    const bool significant = corrected[i] <= options.alpha;
    if (!significant && entry.change != ChangeKind::unchanged) entry.change = ChangeKind::unclear;
  }
  std::stable_sort(comparison.entries.begin(), comparison.entries.end(),
                   [&schema = comparison.matching.schema](const QuantityComparison& left,
                                                          const QuantityComparison& right) {
                     if (left.change != right.change) return left.change < right.change;
                     return worsening_percent(left, schema) > worsening_percent(right, schema);
                   });
  return comparison;
}

}  // namespace perdura::compare
