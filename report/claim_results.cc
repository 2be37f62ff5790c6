#include "report/claim_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

using Outcome = ClaimResult::Outcome;

/// "interrupted, 23 of 60 points". A process that was killed leaves the status `running`.
std::string how_far(const ResultFolder& folder) {
  const std::string status = folder.from_manifest("status");
  return fmt::format("{}, {}", status == "running" ? "unfinished" : status, folder.unfinished());
}

bool measures(const Points& points, std::size_t row, const Claim& claim) {
  const std::string& experiment = points.text(row, "experiment");
  return std::find(claim.experiments.begin(), claim.experiments.end(), experiment) !=
         claim.experiments.end();
}

/// One claim of one paper.
class Measuring {
 public:
  Measuring(const Contents& contents, const std::vector<ResultFolder>& folders,
            const ReportedPaper& paper, const Claim& claim)
      : contents_(contents), folders_(folders), paper_(paper), claim_(claim) {}

  std::vector<ClaimResult> results() {
    if (!claim_.not_covered.empty()) {
      return {{&paper_, &claim_, Outcome::not_covered, "", {}, claim_.not_covered, {}, {}}};
    }
    if (claim_.y.empty()) {
      for (const Section& section : contents_.sections) measure_figures(section);
    } else {
      for (const ResultFolder& folder : folders_) measure_rows(folder);
    }
    if (results_.empty()) {
      results_.push_back({&paper_, &claim_, Outcome::not_measured, "", {}, what_would(), {}, {}});
    }
    for (ClaimResult& result : results_) {
      if (result.outcome == Outcome::differs) result.notes = paper_.notes_on(claim_);
    }
    return std::move(results_);
  }

 private:
  /// The `measured` text if a run has not measured the claim: that the run ended early, or else
  /// that a run is needed.
  std::string what_would() const {
    for (const ResultFolder& folder : folders_) {
      const bool of_it = folder.points.size() > 0 && measures(folder.points, 0, claim_);
      const bool can =
          claim_.kind != Claim::Kind::exact || folder.from_manifest("provenance") != "measured";
      if (of_it && can && !folder.unfinished().empty()) return how_far(folder);
    }
    return fmt::format("run {}", fmt::join(claim_.experiments, " or "));
  }

  /// The first column that the claim names and the run lacks; empty if none.
  std::string lacks(const Points& points) const {
    for (const std::string& column : claim_.declared) {
      if (!points.has(column)) return column;
    }
    return {};
  }

  void add_not_measured(const ResultFolder& folder, const Origin& origin, std::string why) {
    results_.push_back({&paper_,
                        &claim_,
                        Outcome::not_measured,
                        folder.name,
                        origin,
                        std::move(why),
                        std::nullopt,
                        {}});
  }

  void add(const ResultFolder& folder, const Origin& origin, std::string measured,
           std::optional<double> deviation, bool holds) {
    if (!folder.unfinished().empty()) return add_not_measured(folder, origin, how_far(folder));
    results_.push_back({&paper_,
                        &claim_,
                        holds ? Outcome::holds : Outcome::differs,
                        folder.name,
                        origin,
                        std::move(measured),
                        deviation,
                        {}});
  }

  /// Units other than percent are shown in the column of the reported value.
  std::string with_unit(const std::string& number) const {
    return claim_.unit == "percent" || claim_.unit == "%" ? number + " %" : number;
  }

  void add_number(const ResultFolder& folder, const Origin& origin, double number) {
    // Absolute numbers of another machine cannot confirm or refute the paper's.
    if (claim_.kind == Claim::Kind::exact && !origin.modelled()) return;
    const std::string shown = with_unit(schema::shown_number(number));
    if (number == claim_.number) {  // equal also if both are 0 or infinite
      add(folder, origin, shown, 0.0, true);
      return;
    }
    if (claim_.number == 0 || std::isinf(claim_.number) || std::isinf(number)) {
      add(folder, origin, shown, std::nullopt, false);
      return;
    }
    const double deviation = (number / claim_.number - 1) * 100;
    add(folder, origin, shown, deviation, std::abs(deviation) <= *claim_.tolerance);
  }

  void measure_comparison(const ResultFolder& folder, const schema::DataSpec& spec,
                          const Origin& origin, const Comparison& comparison) {
    if (spec.id != claim_.figure || spec.paper != claim_.paper || !comparison.averaged) return;
    for (const Compared& row : comparison.rows) {
      if (row.paper == &claim_) add_number(folder, origin, row.ours);
    }
  }

  void measure_figures(const Section& section) {
    for (const FigureResult& figure : section.figures) {
      if (!is_of_experiment(figure.folder->points, figure.data.rows)) continue;
      measure_comparison(*figure.folder, figure.spec, figure.origin, figure.comparison);
    }
    for (const TableResult& table : section.tables) {
      if (!is_of_experiment(table.folder->points, table.data.rows)) continue;
      for (const Comparison& comparison : table.data.comparisons) {
        measure_comparison(*table.folder, table.spec, table.origin, comparison);
      }
      for (const FormulaBlock& block : table.data.formulas) {
        if (block.formula == &claim_) measure_formula(table, block);
      }
    }
  }

  bool is_of_experiment(const Points& points, const std::vector<std::size_t>& rows) const {
    return !rows.empty() && measures(points, rows.front(), claim_);
  }

  void measure_formula(const TableResult& table, const FormulaBlock& block) {
    std::size_t equal = 0;
    double largest = 0;
    for (const FormulaRow& row : block.rows) {
      if (row.equal) {
        ++equal;
        continue;
      }
      const double deviation = (row.counted / row.formula - 1) * 100;
      if (std::abs(deviation) > std::abs(largest)) largest = deviation;
    }
    add(*table.folder, table.origin,
        fmt::format("equal for {} of {} sizes", equal, block.rows.size()), largest,
        std::abs(largest) <= *claim_.tolerance);
  }

  void measure_rows(const ResultFolder& folder) {
    std::map<Origin, std::vector<std::size_t>> rows;
    for (std::size_t row = 0; row < folder.points.size(); ++row) {
      if (measures(folder.points, row, claim_)) rows[origin_of(folder.points, row)].push_back(row);
    }
    for (const auto& [origin, candidates] : rows) {
      if (const std::string lacking = lacks(folder.points); !lacking.empty()) {
        add_not_measured(folder, origin,
                         fmt::format("it has no column '{}'; see docs/claims.md", lacking));
        continue;
      }
      if (claim_.lower.empty()) {
        std::vector<double> values = values_of(claim_, folder.points, candidates);
        if (claim_.over.empty()) {
          for (double& value : values) value *= folder.points.schema().quantity(claim_.y).scale;
        }
        measure_numbers(folder, origin, values);
        continue;
      }
      const Pairs pairs = find_pairs(claim_, folder.points, candidates);
      if (pairs.size() == 0) continue;
      if (claim_.kind == Claim::Kind::order) {
        measure_order(folder, origin, pairs);
      } else {
        measure_numbers(folder, origin, in_unit(pairs));
      }
    }
  }

  void measure_numbers(const ResultFolder& folder, const Origin& origin,
                       const std::vector<double>& numbers) {
    if (numbers.empty()) return;
    if (claim_.is_bound()) {
      measure_bound(folder, origin, numbers);
      return;
    }
    const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
    add_number(folder, origin, sum / static_cast<double>(numbers.size()));
  }

  /// Judges by the number that is nearest to the bound, or farthest beyond it.
  void measure_bound(const ResultFolder& folder, const Origin& origin,
                     const std::vector<double>& numbers) {
    const auto [least, largest] = std::minmax_element(numbers.begin(), numbers.end());
    const bool lower = claim_.kind == Claim::Kind::at_least;
    const double worst = lower ? *least : *largest;
    const double slack = claim_.number * *claim_.tolerance / 100;
    const bool holds = lower ? worst >= claim_.number - slack : worst <= claim_.number + slack;
    const std::string from = schema::shown_number(*least);
    const std::string to = schema::shown_number(*largest);
    std::optional<double> beyond;
    if (!holds && claim_.number > 0) beyond = (worst / claim_.number - 1) * 100;
    add(folder, origin, from == to ? from : fmt::format("{} to {}", from, to), beyond, holds);
  }

  /// Converts ratios to the unit of the claim: a factor, or a reduction in percent.
  std::vector<double> in_unit(const Pairs& pairs) const {
    std::vector<double> numbers = pairs.ratios;
    if (claim_.unit == "percent") {
      for (double& number : numbers) number = (1 - 1 / number) * 100;
    }
    return numbers;
  }

  void measure_order(const ResultFolder& folder, const Origin& origin, const Pairs& pairs) {
    const std::size_t holds = holding(claim_, pairs);
    const std::string least = fmt::format("{:.2f}", pairs.least());
    const std::string largest = fmt::format("{:.2f}", pairs.largest());
    std::optional<double> deviation;
    if (claim_.tolerance) {
      deviation =
          100 * (pairs.largest() - 1 > 1 - pairs.least() ? pairs.largest() - 1 : pairs.least() - 1);
    }
    add(folder, origin,
        fmt::format("in {} of {} pairs, ratio {}", holds, pairs.size(),
                    least == largest ? least : least + " to " + largest),
        deviation, holds == pairs.size());
  }

  const Contents& contents_;
  const std::vector<ResultFolder>& folders_;
  const ReportedPaper& paper_;
  const Claim& claim_;
  std::vector<ClaimResult> results_;
};

}  // namespace

std::string_view to_string(ClaimResult::Outcome outcome) {
  switch (outcome) {
    case Outcome::holds:
      return "holds";
    case Outcome::differs:
      return "differs";
    case Outcome::not_measured:
      return "not measured";
    case Outcome::not_covered:
      return "not covered";
  }
  return "";
}

std::string shown_printed(const Claim& claim) {
  if (claim.value == "inf") return "∞";
  std::string value = claim.value;
  for (std::size_t at = 0; (at = value.find(" * ", at)) != std::string::npos;) {
    value.replace(at, 3, "·");
  }
  return value;
}

std::string shown_reported(const Claim& claim) {
  if (claim.not_covered.empty() && claim.kind == Claim::Kind::order) {
    return claim.tolerance ? "no difference" : "this order";
  }
  std::string shown = shown_printed(claim);
  if (claim.is_bound()) shown = fmt::format("{} {}", to_string(claim.kind), shown);
  const std::string unit = claim.unit == "percent" ? "%" : schema::shown_unit(claim.unit);
  return unit.empty() || shown.empty() ? shown : shown + " " + unit;
}

std::string shown_deviation(const ClaimResult& result) {
  if (!result.deviation) return "–";
  return std::abs(*result.deviation) < 0.05 ? "0 %" : fmt::format("{:+.1f} %", *result.deviation);
}

namespace {

/// The system's name as shown in a folder that has results of it, if there is one.
std::string shown_system(const std::vector<ResultFolder>& folders, std::string_view system) {
  for (const ResultFolder& folder : folders) {
    for (const auto& [name, title] : folder.points.schema().find("system")->words) {
      if (name == system) return std::string(title);
    }
  }
  return schema::shown_name(system);
}

std::string shown_quantity(const Claim& claim, const std::vector<ResultFolder>& folders) {
  std::string words = claim.quantity;
  if (!claim.workload.empty()) words += ", " + schema::shown_workload(claim.workload);
  if (!claim.system.empty()) words += ", " + shown_system(folders, claim.system);
  return words;
}

}  // namespace

std::vector<ClaimResult> measure_claims(const Contents& contents,
                                        const std::vector<ResultFolder>& folders,
                                        const Papers& papers) {
  std::vector<ClaimResult> all;
  for (const auto& [name, paper] : papers) {
    for (const Claim& claim : paper.claims) {
      for (ClaimResult& result : Measuring(contents, folders, paper, claim).results()) {
        result.quantity = shown_quantity(claim, folders);
        all.push_back(std::move(result));
      }
    }
  }
  return all;
}

namespace {

std::string score_words(const ClaimScore& score, std::string_view one, std::string_view several) {
  return fmt::format("of {} {}, {} hold{} and {} differ{}", score.size(),
                     score.size() == 1 ? one : several, score.holds, score.holds == 1 ? "s" : "",
                     score.differs, score.differs == 1 ? "s" : "");
}

}  // namespace

std::string ClaimCounts::words() const {
  std::string text = score_words(predictions, "prediction", "predictions");
  if (fitted.size() > 0)
    text += "; " + score_words(fitted, "fitted statement", "fitted statements");
  if (inputs.size() > 0) text += "; " + score_words(inputs, "input", "inputs");
  if (not_measured > 0) text += fmt::format("; {} not measured", not_measured);
  if (not_covered > 0) text += fmt::format("; {} not covered", not_covered);
  return text;
}

ClaimCounts count_claims(const std::vector<ClaimResult>& results) {
  ClaimCounts counts;
  for (const ClaimResult& result : results) {
    if (result.outcome == Outcome::not_measured) ++counts.not_measured;
    if (result.outcome == Outcome::not_covered) ++counts.not_covered;
    ClaimScore& score = result.claim->basis == Claim::Basis::prediction ? counts.predictions
                        : result.claim->basis == Claim::Basis::fitted   ? counts.fitted
                                                                        : counts.inputs;
    if (result.outcome == Outcome::holds) ++score.holds;
    if (result.outcome == Outcome::differs) ++score.differs;
  }
  return counts;
}

}  // namespace perdura::report
