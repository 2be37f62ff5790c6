#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/contents.h"
#include "harness/schema/csv_table.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

std::string number(double value) { return std::isinf(value) ? "inf" : fmt::format("{}", value); }

/// The paper's average as a line in the figure: only beside a model of the paper's own testbed.
std::string paper_average(const FigureResult& figure, const std::string& series) {
  if (!figure.origin.modelled() || !figure.comparison.averaged) return "";
  for (const Compared& row : figure.comparison.rows) {
    if (row.series == series && row.paper != nullptr) return number(row.paper->number);
  }
  return "";
}

/// What a bar of this height says: short, for it stands above a narrow bar.
std::string bar_text(double value) {
  if (std::isinf(value)) return "∞";
  if (value == 0) return "0";
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

std::string timeline_csv(const FigureResult& figure) {
  const auto maybe = [](const std::optional<double>& value) {
    return value ? number(*value) : std::string();
  };
  std::string csv =
      "series,label,series_index,style,x,y,y_max,free_percent,cleanings,cleanings_now,"
      "operations\n";
  const Series& series = figure.data.series.front();
  for (const TimelineRow& row : figure.timeline) {
    csv += fmt::format("{},{},0,{},{},{},{},{},{},{},{}\n", csv_cell(series.name),
                       csv_cell(figure.spec.shown_series(series.name)), series.style,
                       number(row.time_ms), maybe(row.latency_mean_us), maybe(row.latency_max_us),
                       maybe(row.free_percent), maybe(row.cleanings), maybe(row.cleanings_now),
                       number(row.operations));
  }
  return csv;
}

}  // namespace

// The columns that may be empty stand before one that never is: gnuplot misreads an empty last
// cell.
std::string figure_csv(const FigureResult& figure) {
  if (!figure.timeline.empty()) return timeline_csv(figure);
  std::string csv =
      "series,label,series_index,style,x,x_label,x_index,y,y_low,y_high,repetitions,"
      "paper_average,noisy,text\n";
  std::size_t series_index = 0;
  for (const Series& series : figure.data.series) {
    std::size_t x_index = 0;
    for (const std::string& x : figure.data.xs) {
      const DrawnPoint* point = figure.data.find(series.name, x);
      if (point != nullptr) {
        csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(series.name),
                           csv_cell(legend_label(figure, series)), series_index, series.style,
                           figure.spec.at.empty() ? csv_cell(x) : number(point->at),
                           csv_cell(figure.spec.shown_x(x)), x_index, number(point->mean),
                           // Nothing that is drawn can be less than nothing.
                           number(std::max(0.0, point->mean - point->half_width)),
                           number(point->mean + point->half_width), point->repetitions,
                           paper_average(figure, series.name), point->noisy,
                           bar_text(point->mean) + (point->noisy > 0 ? "*" : ""));
      }
      ++x_index;
    }
    ++series_index;
  }
  return csv;
}

std::string table_csv(const TableResult& table) {
  if (table.spec.kind == TableSpec::Kind::formula) {
    std::string csv =
        fmt::format("workload,series,key_size,{},counted,formula,paper,equal\n", table.spec.x);
    for (const FormulaBlock& block : table.data.formulas) {
      for (const FormulaRow& row : block.rows) {
        const bool known = block.formula != nullptr;
        csv += fmt::format(
            "{},{},{},{},{},{},{},{}\n", csv_cell(block.workload), csv_cell(block.series),
            row.key_size, row.x, number(row.counted), known ? csv_cell(block.formula->value) : "",
            known ? number(row.formula) : "", known ? (row.equal ? "yes" : "no") : "");
      }
    }
    return csv;
  }
  std::string csv = "workload,series,average,points,of,paper\n";
  for (const Comparison& comparison : table.data.comparisons) {
    for (const Compared& row : comparison.rows) {
      csv += fmt::format("{},{},{},{},{},{}\n", csv_cell(row.workload), csv_cell(row.series),
                         number(row.ours), comparison.used, comparison.total,
                         row.paper != nullptr ? row.paper->value : "");
    }
  }
  return csv;
}

}  // namespace perdura::report
