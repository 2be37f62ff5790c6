#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/schema/csv_table.h"
#include "report/compare/output.h"
#include "report/drawing.h"

namespace perdura::compare {
namespace {

/// The change's color in the palette of plots/style.gp: orange is worse, green better.
int style_of(ChangeKind change) {
  switch (change) {
    case ChangeKind::worse:
      return 1;
    case ChangeKind::undecided:
      return 5;
    case ChangeKind::unclear:
      return 3;
    case ChangeKind::unchanged:
      return 0;
    case ChangeKind::better:
      return 2;
  }
  return 0;
}

std::string more_percent(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.6g}", (ratio - 1) * 100) : "";
}

}  // namespace

std::string figure_csv(const Comparison& comparison) {
  const PointNames names(comparison);
  std::map<ChangeKind, std::size_t> series;  // in the order in which they are first drawn
  std::string csv = "series,label,series_index,style,row,name,change,low,high,threshold\n";
  const std::size_t rows = std::min(comparison.entries.size(), kFigureRows);
  for (std::size_t row = 0; row < rows; ++row) {
    const QuantityComparison& entry = comparison.entries[row];
    const std::size_t index = series.emplace(entry.change, series.size()).first->second;
    const std::string_view verdict = to_string(entry.change);
    csv += fmt::format(
        "{},{},{},{},{},{},{},{},{},{}\n", verdict, verdict, index, style_of(entry.change), row,
        schema::csv_cell(names.name(entry.point) + ": " + entry.quantity),
        more_percent(entry.ratio), entry.interval ? more_percent(entry.interval->low) : "",
        entry.interval ? more_percent(entry.interval->high) : "",
        comparison.options.threshold_percent);
  }
  return csv;
}

schema::Expected<void> draw(const Comparison& comparison, const FigureOptions& options) {
  const report::DrawingPlace place{options.out, options.plots, options.out / "plots",
                                   options.gnuplot, options.while_drawing};
  if (auto copied = report::copy_scripts(place); !copied) return tl::unexpected(copied.error());
  const std::string shown =
      comparison.entries.size() > kFigureRows
          ? fmt::format("{} of {}, worst first", kFigureRows, comparison.entries.size())
          : "";
  const auto drawn =
      report::draw({.name = "comparison",
                    .script = "comparison",
                    .csv = figure_csv(comparison),
                    .title = options.title,
                    .x_label = "Change from A to B (%)",
                    .y_label = shown,
                    .origin = comparison.matching.modelled ? "modelled" : "measured"},
                   place);
  if (!drawn) return tl::unexpected(drawn.error());
  if (drawn->problem) return tl::unexpected(*drawn->problem);
  return {};
}

}  // namespace perdura::compare
