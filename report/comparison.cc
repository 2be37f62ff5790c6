#include "report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/schema/quantity.h"
#include "report/formula.h"

namespace perdura::report {
namespace {

std::string baseline_of(const FigureData& data, const schema::DataSpec& spec) {
  for (const Series& series : data.series) {
    if (series.name == spec.baseline) return series.name;
  }
  return spec.baseline.empty() && !data.series.empty() ? data.series.front().name : spec.baseline;
}

Comparison empty_comparison(const FigureData& data, const schema::DataSpec& spec) {
  Comparison comparison;
  comparison.unit = data.unit;
  comparison.baseline = baseline_of(data, spec);
  comparison.normalized = spec.normalize.has_value();
  return comparison;
}

/// The ratio, unless either side is 0 or infinite, so that it would mean nothing.
std::optional<double> ratio(double value, double to) {
  if (value == 0 || to == 0 || std::isinf(value) || std::isinf(to)) return std::nullopt;
  return value / to;
}

schema::Expected<const Claim*> reported(const ComparisonContext& context, const std::string& unit,
                                        const std::string& workload, const std::string& series) {
  if (context.paper == nullptr) return nullptr;
  const Claim::Kind kind = context.spec.normalize ? Claim::Kind::ratio : Claim::Kind::exact;
  const Claim* value = context.paper->find(context.spec.id, kind, workload, series);
  if (value != nullptr && value->unit != unit) {
    return schema::fail(fmt::format(
        "{}:{}: unit '{}' where figure {} shows '{}'; give the value in '{}'",
        context.paper->file.string(), value->line, value->unit, context.spec.id, unit, unit));
  }
  return value;
}

schema::Expected<Compared> compared(double ours, const std::string& workload,
                                    const std::string& series, const Comparison& comparison,
                                    const ComparisonContext& context) {
  auto paper = reported(context, comparison.unit, workload, series);
  if (!paper) return tl::unexpected(paper.error());
  auto base = reported(context, comparison.unit, workload, comparison.baseline);
  if (!base) return tl::unexpected(base.error());
  Compared row{workload, series, ours, std::nullopt, *paper, std::nullopt, std::nullopt};
  if (*paper != nullptr) {
    // A ratio to the baseline does not depend on the testbed's speed, unlike an absolute number. An
    // average that the paper states for several figures is not split into a number for each.
    const bool same_thing = (*paper)->figure == context.spec.id;
    if (same_thing && (context.modelled || comparison.normalized)) {
      row.to_paper = ratio(ours, (*paper)->number);
    }
    if (*base != nullptr) row.paper_to_baseline = ratio((*paper)->number, (*base)->number);
  }
  return row;
}

}  // namespace

bool Comparison::has_paper() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const Compared& row) { return row.paper != nullptr; });
}

schema::Expected<Comparison> compare_averages(const FigureData& data, const std::string& workload,
                                              const ComparisonContext& context) {
  Comparison comparison = empty_comparison(data, context.spec);
  const Averages averages = average_over_x(data);
  comparison.used = averages.used;
  comparison.total = averages.total;
  for (const Series& series : data.series) {
    const auto ours = averages.by_series.find(series.name);
    if (ours == averages.by_series.end()) continue;
    auto row = compared(ours->second, workload, series.name, comparison, context);
    if (!row) return tl::unexpected(row.error());
    const auto base = averages.by_series.find(comparison.baseline);
    if (base != averages.by_series.end()) row->to_baseline = ratio(ours->second, base->second);
    comparison.rows.push_back(std::move(*row));
  }
  return comparison;
}

schema::Expected<Comparison> compare_points(const FigureData& data,
                                            const ComparisonContext& context) {
  Comparison comparison = empty_comparison(data, context.spec);
  comparison.averaged = false;
  for (const std::string& x : data.xs) {
    for (const Series& series : data.series) {
      const DrawnPoint* point = data.find(series.name, x);
      if (point == nullptr) continue;
      auto row = compared(point->mean, x, series.name, comparison, context);
      if (!row) return tl::unexpected(row.error());
      if (const DrawnPoint* base = data.find(comparison.baseline, x)) {
        row->to_baseline = ratio(point->mean, base->mean);
      }
      comparison.rows.push_back(std::move(*row));
    }
  }
  return comparison;
}

}  // namespace perdura::report
