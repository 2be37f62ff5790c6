// Tables of the comparisons with papers.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/schema/quantity.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

Cell number_cell(const std::optional<double>& number, const char* css = "n") {
  return {number ? schema::shown_number(*number) : "–", css};
}

/// The columns of a comparison; absolute numbers are accompanied by the ratio to the baseline.
struct Columns {
  bool place = false;  ///< a workload, or else a place on the x-axis
  bool paper = false;
  bool to_paper = false;
  bool to_baseline = false;
  bool paper_to_baseline = false;
  std::string paper_title = "paper";
};

Columns columns_of(const std::vector<Comparison>& comparisons, const schema::DataSpec& spec) {
  Columns columns;
  columns.place = comparisons.size() > 1 || !comparisons.front().averaged;
  columns.to_baseline = !comparisons.front().normalized;
  for (const Comparison& comparison : comparisons) {
    for (const Compared& row : comparison.rows) {
      if (row.paper != nullptr) {
        columns.paper = true;
        if (row.paper->figure != spec.id) {
          columns.paper_title = "paper, average of " + schema::shown_range(row.paper->figure);
        }
      }
      if (row.to_paper) columns.to_paper = true;
      if (row.paper_to_baseline) columns.paper_to_baseline = true;
    }
  }
  return columns;
}

/// Describes the numbers: "average, µs".
std::string what_is_shown(const Comparison& first, const schema::DataSpec& spec) {
  std::string what = first.averaged ? "average" : "";
  const auto add = [&](const std::string& more) { what += (what.empty() ? "" : ", ") + more; };
  const std::string unit = schema::shown_unit(first.unit);
  if (first.normalized) {
    add(spec.shown_series(first.baseline) + " = 1");
  } else if (!unit.empty()) {
    add(unit);
  }
  return what.empty() ? std::string(spec.schema.quantity(spec.y).axis) : what;
}

std::vector<ShownRow> header(const Columns& columns, const Comparison& first,
                             const schema::DataSpec& spec) {
  const std::size_t ours = 1U + (columns.paper ? 1U : 0U) + (columns.to_paper ? 1U : 0U);
  ShownRow above{{{.css = "over", .columns = columns.place ? 2U : 1U},
                  {.text = what_is_shown(first, spec), .css = "over", .columns = ours}}};
  ShownRow below;
  if (columns.place) {
    const bool by_workload = first.averaged || spec.x == "workload";
    below.cells.push_back({by_workload ? "Workload" : spec.shown_x_axis()});
  }
  below.cells.push_back({schema::shown_name(spec.series)});
  below.cells.push_back({"this run", "n"});
  if (columns.paper) below.cells.push_back({columns.paper_title, "n"});
  if (columns.to_paper) below.cells.push_back({"run ÷ paper", "n"});
  if (columns.to_baseline) {
    above.cells.push_back({.text = spec.shown_series(first.baseline) + " = 1",
                           .css = "over apart",
                           .columns = columns.paper_to_baseline ? 2U : 1U});
    below.cells.push_back({"this run", "n apart"});
  }
  if (columns.paper_to_baseline) below.cells.push_back({"paper", "n"});
  return {above, below};
}

ShownRow row_of(const Columns& columns, const Compared& row, bool averaged,
                const schema::DataSpec& spec) {
  ShownRow shown;
  if (columns.place) {
    shown.cells.push_back(
        {averaged ? schema::shown_workload(row.workload) : spec.shown_x(row.workload)});
  }
  shown.cells.push_back({spec.shown_series(row.series)});
  shown.cells.push_back(number_cell(row.ours));
  if (columns.paper) {
    shown.cells.push_back({row.paper == nullptr ? "–" : shown_printed(*row.paper), "n"});
  }
  if (columns.to_paper) shown.cells.push_back(number_cell(row.to_paper));
  if (columns.to_baseline) shown.cells.push_back(number_cell(row.to_baseline, "n apart"));
  if (columns.paper_to_baseline) shown.cells.push_back(number_cell(row.paper_to_baseline));
  return shown;
}

/// Ours divided by our baseline's, or the paper's by its own. For a baseline that normalizes: 1, or
/// 0 if the value that it normalizes by is 0.
std::optional<double> ratio_of(const Compared& row, const Comparison& comparison, bool paper) {
  if (!comparison.normalized) {
    if (row.series == comparison.baseline) return 1;
    return paper ? row.paper_to_baseline : row.to_baseline;
  }
  if (!paper) return row.ours;
  if (row.paper != nullptr) return row.paper->number;
  return row.series == comparison.baseline ? std::optional(1.0) : std::nullopt;
}

void add_ratios(ShownTable& table, const Comparison& comparison, const schema::DataSpec& spec,
                const std::string& anchor) {
  for (const Compared& row : comparison.rows) {
    if (row.series == comparison.baseline) continue;
    const std::string workload = schema::shown_workload(row.workload);
    table.rows.push_back(
        {{{.text = schema::capitalized(spec.schema.quantity(spec.y).noun)},
          {.text = workload.empty() ? spec.title : workload, .css = "apart", .link = "#" + anchor},
          {.text = spec.shown_series(row.series), .css = "apart"},
          {.text = spec.shown_series(comparison.baseline), .css = "apart"},
          number_cell(ratio_of(row, comparison, false)),
          number_cell(ratio_of(row, comparison, true))}});
  }
}

}  // namespace

ShownTable comparison_table(const std::vector<Comparison>& comparisons,
                            const schema::DataSpec& spec) {
  ShownTable table;
  if (comparisons.empty() || comparisons.front().rows.empty()) return table;
  const Columns columns = columns_of(comparisons, spec);
  table.head = header(columns, comparisons.front(), spec);
  for (const Comparison& comparison : comparisons) {
    for (const Compared& row : comparison.rows) {
      // A baseline normalized by itself is always 1, which is no information; a cost of 0 is.
      const bool trivial =
          comparison.normalized && row.series == comparison.baseline && row.ours == 1;
      if (!trivial) table.rows.push_back(row_of(columns, row, comparison.averaged, spec));
    }
  }
  return table;
}

DataList comparison_remarks(const std::vector<Comparison>& comparisons, const Origin& origin) {
  DataList remarks;
  const auto incomplete =
      std::find_if(comparisons.begin(), comparisons.end(),
                   [](const Comparison& each) { return each.averaged && each.used != each.total; });
  if (incomplete != comparisons.end()) {
    remarks.push_back(fmt::format("Averages over the points that every series has: {} of {}.",
                                  incomplete->used, incomplete->total));
  }
  const bool paper = std::any_of(comparisons.begin(), comparisons.end(),
                                 [](const Comparison& each) { return each.has_paper(); });
  if (paper && !origin.modelled()) {
    remarks.push_back(
        std::string("The paper's testbed is not this host: compare ratios, not absolute numbers."));
  }
  return remarks;
}

ShownTable ratios_table(const Section& section) {
  ShownTable table{.head = {{{{"Average of"},
                              {"For", "apart"},
                              {"Of", "apart"},
                              {"Over", "apart"},
                              {"This run", "n"},
                              {"Paper", "n"}}}}};
  for (const FigureResult& figure : section.figures) {
    const bool averages = figure.comparison.averaged && figure.timeline.empty();
    if (averages && figure.folder->unfinished().empty()) {
      add_ratios(table, figure.comparison, figure.spec, "fig-" + figure.name);
    }
  }
  for (const TableResult& each : section.tables) {
    if (!each.folder->unfinished().empty()) continue;
    for (const Comparison& comparison : each.data.comparisons) {
      add_ratios(table, comparison, each.spec, each.name);
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& left, const auto& right) {
    return left.cells.front().text < right.cells.front().text;
  });
  return table;
}

std::string table_label(const TableResult& table) {
  const schema::TableSpec& spec = table.spec;
  const bool range = spec.id.find('-') != std::string::npos;
  const bool figures = spec.kind == schema::TableSpec::Kind::average && range;
  return fmt::format("{}{} {}", table.paper_name.empty() ? "" : table.paper_name + ", ",
                     figures ? "Figures" : "Table", schema::shown_range(spec.id));
}

Data table_data(const TableResult& table, const Papers& papers) {
  Data data;
  data["name"] = table.name;
  data["label"] = table_label(table);
  data["table_title"] = table.spec.title;
  data["modelled"] = table.origin.modelled();
  if (!table.folder->unfinished().empty()) data["unfinished"] = table.folder->unfinished();
  data["average"] = false;
  data["formula"] = false;
  if (!table.data.comparisons.empty()) {
    data["average"] = data_of(comparison_table(table.data.comparisons, table.spec));
    data["remarks"] = comparison_remarks(table.data.comparisons, table.origin);
  } else if (!table.data.formulas.empty()) {
    data["formula"] = data_of(formula_overview(table));
    data["cases"] = data_of(formula_cases(table));
    data["counted"] = std::string(table.spec.schema.quantity(table.spec.y).axis);
  }
  data["empty"] = table.data.comparisons.empty() && table.data.formulas.empty();
  std::vector<Link> links = links_to_notes(table.spec, papers);
  links.push_back({fmt::format("figures/{}.csv", table.name), "data"});
  data["links"] = data_of(links);
  return data;
}

}  // namespace perdura::report
