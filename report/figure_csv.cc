#include <fmt/format.h>

#include <algorithm>

#include "harness/schema/csv_table.h"
#include "report/contents.h"
#include "report/drawing.h"

namespace perdura::report {
namespace {

/// The paper's average, drawn as a line, only on a model of the paper's own testbed.
std::string paper_average(const FigureResult& figure, const std::string& series) {
  if (!figure.origin.modelled() || !figure.comparison.averaged) return "";
  for (const Compared& row : figure.comparison.rows) {
    if (row.series == series && row.paper != nullptr) return csv_number(row.paper->number);
  }
  return "";
}

std::string timeline_csv(const FigureResult& figure) {
  const auto maybe = [](const std::optional<double>& value) {
    return value ? csv_number(*value) : std::string();
  };
  std::string csv =
      "series,label,series_index,style,x,y,y_max,free_percent,cleanings,cleanings_now,"
      "operations\n";
  const Series& series = figure.data.series.front();
  for (const TimelineRow& row : figure.timeline) {
    csv += fmt::format("{},{},0,{},{},{},{},{},{},{},{}\n", schema::csv_cell(series.name),
                       schema::csv_cell(figure.spec.shown_series(series.name)), series.style,
                       csv_number(row.time_ms), maybe(row.latency_mean_us),
                       maybe(row.latency_max_us), maybe(row.free_percent), maybe(row.cleanings),
                       maybe(row.cleanings_now), csv_number(row.operations));
  }
  return csv;
}

}  // namespace

std::string figure_csv(const FigureResult& figure) {
  if (!figure.timeline.empty()) return timeline_csv(figure);
  std::vector<DrawnRow> rows;
  for (std::size_t series_index = 0; const Series& series : figure.data.series) {
    for (std::size_t x_index = 0; const std::string& x : figure.data.xs) {
      if (const DrawnPoint* point = figure.data.find(series.name, x)) {
        rows.push_back({.series = series.name,
                        .label = legend_label(figure, series),
                        .series_index = series_index,
                        .style = series.style,
                        .x = figure.spec.at.empty() ? x : csv_number(point->at),
                        .x_label = figure.spec.shown_x(x),
                        .x_index = x_index,
                        .y = point->mean,
                        // No drawn quantity can be negative.
                        .low = std::max(0.0, point->mean - point->half_width),
                        .high = point->mean + point->half_width,
                        .repetitions = point->repetitions,
                        .paper_average = paper_average(figure, series.name),
                        .noisy = point->noisy});
      }
      ++x_index;
    }
    ++series_index;
  }
  return csv_of(rows);
}

std::string table_csv(const TableResult& table) {
  if (table.spec.kind == schema::TableSpec::Kind::formula) {
    std::string csv =
        fmt::format("workload,series,key_size,{},counted,formula,paper,equal\n", table.spec.x);
    for (const FormulaBlock& block : table.data.formulas) {
      for (const FormulaRow& row : block.rows) {
        const bool known = block.formula != nullptr;
        csv += fmt::format(
            "{},{},{},{},{},{},{},{}\n", schema::csv_cell(block.workload),
            schema::csv_cell(block.series), row.key_size, row.x, csv_number(row.counted),
            known ? schema::csv_cell(block.formula->value) : "",
            known ? csv_number(row.formula) : "", known ? (row.equal ? "yes" : "no") : "");
      }
    }
    return csv;
  }
  std::string csv = "workload,series,average,points,of,paper\n";
  for (const Comparison& comparison : table.data.comparisons) {
    for (const Compared& row : comparison.rows) {
      csv += fmt::format("{},{},{},{},{},{}\n", schema::csv_cell(row.workload),
                         schema::csv_cell(row.series), csv_number(row.ours), comparison.used,
                         comparison.total, row.paper != nullptr ? row.paper->value : "");
    }
  }
  return csv;
}

}  // namespace perdura::report
