#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "harness/schema/quantity.h"
#include "harness/text/printable.h"
#include "harness/text/text_table.h"
#include "report/compare/mann_whitney.h"
#include "report/compare/output.h"

namespace perdura::compare {
namespace {

/// Columns whose values need no label and are part of every name.
bool speaks_for_itself(std::string_view column) {
  return column == "system" || column == "workload" || column == "operation";
}

std::string percent(double value) {
  if (std::isinf(value)) return "inf";
  // No sign if the value is shown as 0.
  return std::abs(value) < 0.05 ? "0.0 %" : fmt::format("{:+.1f} %", value);
}

std::string interval_of(const QuantityComparison& entry) {
  if (!entry.interval) return "-";
  return fmt::format("{:+.1f} .. {:+.1f} %", (entry.interval->low - 1) * 100,
                     (entry.interval->high - 1) * 100);
}

using Cells = std::array<std::string, 8>;

Cells cells_of(const QuantityComparison& entry, const PointNames& names) {
  return {std::string(to_string(entry.change)),
          names.name(entry.point),
          entry.quantity,
          schema::shown_number(entry.a),
          schema::shown_number(entry.b),
          percent(change_percent(entry)),
          interval_of(entry),
          entry.p ? fmt::format("{:.2g}", *entry.p) : "-"};
}

std::string table(const Comparison& comparison, const PointNames& names) {
  return harness::text_table([&](const harness::AddLine& add) {
    add(Cells{"", "point", "quantity", "A", "B", "change", "95 % interval", "p"});
    for (const QuantityComparison& entry : comparison.entries) add(cells_of(entry, names));
  });
}

std::string what_was_done(const Comparison& comparison) {
  const Options& options = comparison.options;
  std::string text;
  if (comparison.tested > 0) {
    text += fmt::format(
        "{} tested with the Mann-Whitney U test over repetitions; p is corrected for so many tests "
        "(Holm), {} is significant\n",
        comparison.tested, options.alpha);
  }
  if (comparison.by_threshold > 0) {
    text += fmt::format(
        "{} compared by the threshold alone: simulated with the same seeds and so without noise, "
        "with fewer repetitions than the {} that a test needs\n",
        comparison.by_threshold, comparison.repetitions_needed);
  }
  text +=
      fmt::format("{} worse, {} better by more than {} %; {} unclear, {} unchanged, {} undecided\n",
                  comparison.count(ChangeKind::worse), comparison.count(ChangeKind::better),
                  options.threshold_percent, comparison.count(ChangeKind::unclear),
                  comparison.count(ChangeKind::unchanged), comparison.count(ChangeKind::undecided));
  return text;
}

std::string how_lost(const Lost& lost) {
  if (lost.missing()) return "missing in B";
  return fmt::format("{} of {} repetitions not valid in B, {} of {} in A", lost.not_valid_b,
                     lost.valid_b + lost.not_valid_b, lost.not_valid_a,
                     lost.valid_a + lost.not_valid_a);
}

std::set<Point> points_of(const std::vector<Lost>& lost) {
  std::set<Point> points;
  for (const Lost& each : lost) points.insert(each.point);
  return points;
}

/// True if the list of lost points already contains it.
bool is_lost(const Unmatched& each, const std::set<Point>& lost) {
  return each.side == Side::a && each.quantity.empty() && lost.contains(each.point);
}

char letter(Side side) { return side == Side::a ? 'A' : 'B'; }

}  // namespace

PointNames::PointNames(const Comparison& comparison)
    : columns_(point_columns(comparison.matching.schema)) {
  std::vector<std::set<std::string>> values(columns_.size());
  std::set<const void*> known;  // points that were added, since most are in several lists
  const auto add = [&](const Point& point) {
    if (!known.insert(point.id()).second) return;
    for (std::size_t i = 0; i < columns_.size(); ++i) values[i].insert(point[i]);
  };
  for (const QuantityComparison& entry : comparison.entries) add(entry.point);
  for (const Unmatched& each : comparison.matching.unmatched) add(each.point);
  for (const NotValid& each : comparison.matching.not_valid) add(each.point);
  for (const Lost& each : comparison.matching.lost) add(each.point);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    named_.push_back(values[i].size() > 1 || speaks_for_itself(columns_[i]));
    if (named_.back() || values[i].begin()->empty()) continue;
    common_ += fmt::format("{}{} {}", common_.empty() ? "" : ", ", columns_[i],
                           harness::printable(*values[i].begin()));
  }
}

std::string PointNames::name(const Point& point) const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!named_[i] || point[i].empty()) continue;
    if (!text.empty()) text += " / ";
    if (!speaks_for_itself(columns_[i])) text += fmt::format("{} ", columns_[i]);
    text += harness::printable(point[i]);
  }
  return text;
}

std::string as_text(const Comparison& comparison) {
  const PointNames names(comparison);
  std::string text;
  for (const Differing& each : comparison.matching.differing) {
    text += harness::printable(to_line(each)) + '\n';
  }
  text += fmt::format("all points: {}\n\n{}\n{}", names.common(), table(comparison, names),
                      what_was_done(comparison));
  const auto line = [&text](const std::string& words) { text += words + '\n'; };
  for (const Lost& each : comparison.matching.lost) {
    line(fmt::format("lost: {}: {}", names.name(each.point), how_lost(each)));
  }
  const std::set<Point> lost = points_of(comparison.matching.lost);
  for (const Unmatched& each : comparison.matching.unmatched) {
    if (is_lost(each, lost)) continue;
    line(fmt::format("only in {}: {}{}", letter(each.side), names.name(each.point),
                     each.quantity.empty() ? "" : ", " + each.quantity));
  }
  for (const NotValid& each : comparison.matching.not_valid) {
    line(fmt::format("not compared: {}: {}, repetition {}: {}{}", letter(each.side),
                     names.name(each.point), each.repetition, each.verdict,
                     each.reason.empty() ? "" : ": " + harness::printable(each.reason)));
  }
  for (const Noisy& each : comparison.matching.noisy) {
    line(fmt::format("host not quiet: {}: {}: {} of {} repetition{}: {}", letter(each.side),
                     names.name(each.point), each.noisy, each.valid, each.valid == 1 ? "" : "s",
                     harness::printable(each.noise)));
  }
  return text;
}

std::string too_few_repetitions(const Comparison& comparison) {
  if (comparison.count(ChangeKind::undecided) == 0) return "";
  // They follow the worse ones; any of them serves as an example.
  const QuantityComparison& example = comparison.entries[comparison.count(ChangeKind::worse)];
  const std::size_t undecided = comparison.count(ChangeKind::undecided);
  const std::size_t all = comparison.entries.size();
  const auto repetitions = [](std::size_t count) {
    return fmt::format("{} repetition{}", count, count == 1 ? "" : "s");
  };
  const std::string sides =
      example.repetitions_a == example.repetitions_b
          ? fmt::format("{} on each side", repetitions(example.repetitions_a))
          : fmt::format("{} of A and {} of B", repetitions(example.repetitions_a),
                        repetitions(example.repetitions_b));
  return fmt::format(
      "{} be decided: with {}, no difference is significant at alpha {} among {} "
      "comparison{}; run A and B with at least {} each",
      undecided == all ? "no comparison can"
                       : fmt::format("{} of {} comparisons cannot", undecided, all),
      sides, comparison.options.alpha, all, all == 1 ? "" : "s",
      repetitions(comparison.repetitions_needed));
}

std::string lost_points(const Comparison& comparison, bool ignore_missing) {
  const std::size_t lost = comparison.lost(ignore_missing);
  if (lost == 0) return "";
  const auto& all = comparison.matching.lost;
  const auto first = std::find_if(all.begin(), all.end(), [&](const Lost& each) {
    return !(ignore_missing && each.missing());
  });
  return fmt::format(
      "{} point{} of A {} lost in B, such as {}: {}{}", lost, lost == 1 ? "" : "s",
      lost == 1 ? "is" : "are", PointNames(comparison).name(first->point), how_lost(*first),
      first->missing() ? "; give --ignore-missing if B is not meant to have all of A's points"
                       : "");
}

}  // namespace perdura::compare
