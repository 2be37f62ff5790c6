#include <fmt/format.h>

#include <optional>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

/// A table beside a figure that has more rows is folded away: the figure shows them.
constexpr std::size_t kRowsShown = 16;

std::string number_cell(const std::optional<double>& number, bool apart = false) {
  return fmt::format("<td class=\"n{}\">{}</td>", apart ? " apart" : "",
                     number ? shown_number(*number) : "–");
}

/// Which columns a comparison has; absolute numbers get the ratio to the baseline beside them.
struct Columns {
  bool workload = false;
  bool paper = false;
  bool to_paper = false;
  bool to_baseline = false;
  bool paper_to_baseline = false;
  std::string paper_title = "paper";
};

Columns columns_of(const std::vector<Comparison>& comparisons, const DataSpec& spec) {
  Columns columns;
  columns.workload = comparisons.size() > 1 || !comparisons.front().averaged;
  columns.to_baseline = !comparisons.front().normalized;
  for (const Comparison& comparison : comparisons) {
    for (const Compared& row : comparison.rows) {
      if (row.paper != nullptr) {
        columns.paper = true;
        if (row.paper->figure != spec.id) {
          columns.paper_title =
              fmt::format("paper, average of {}", escaped(shown_range(row.paper->figure)));
        }
      }
      if (row.to_paper) columns.to_paper = true;
      if (row.paper_to_baseline) columns.paper_to_baseline = true;
    }
  }
  return columns;
}

std::string header(const Columns& columns, const Comparison& first, const DataSpec& spec) {
  const std::string unit = shown_unit(first.unit);
  const std::string baseline = escaped(spec.shown_series(first.baseline));
  std::string what = first.averaged ? "average" : "";
  if (first.normalized) {
    what += fmt::format("{}{} = 1", what.empty() ? "" : ", ", baseline);
  } else if (!unit.empty()) {
    what += fmt::format("{}{}", what.empty() ? "" : ", ", escaped(unit));
  } else if (what.empty()) {
    what = escaped(spec.schema.quantity(spec.y).axis);
  }
  const int ours = 1 + (columns.paper ? 1 : 0) + (columns.to_paper ? 1 : 0);
  std::string html = fmt::format("<thead><tr><th class=\"over\"{}></th>",
                                 columns.workload ? " colspan=\"2\"" : "");
  html += fmt::format("<th class=\"over\" colspan=\"{}\">{}</th>", ours, what);
  if (columns.to_baseline) {
    html += fmt::format("<th class=\"over apart\" colspan=\"{}\">{} = 1</th>",
                        columns.paper_to_baseline ? 2 : 1, baseline);
  }
  html += "</tr>\n<tr>";
  if (columns.workload) {
    const bool by_workload = first.averaged || spec.x == "workload";
    html += fmt::format("<th>{}</th>",
                        by_workload ? std::string("Workload") : escaped(spec.shown_x_axis()));
  }
  html += fmt::format("<th>{}</th><th class=\"n\">this run</th>", escaped(shown_name(spec.series)));
  if (columns.paper) html += fmt::format("<th class=\"n\">{}</th>", columns.paper_title);
  if (columns.to_paper) html += "<th class=\"n\">run ÷ paper</th>";
  if (columns.to_baseline) html += "<th class=\"n apart\">this run</th>";
  if (columns.paper_to_baseline) html += "<th class=\"n\">paper</th>";
  return html + "</tr></thead>\n";
}

std::string row_html(const Columns& columns, const Compared& row, bool averaged,
                     const DataSpec& spec) {
  std::string html = "<tr>";
  if (columns.workload) {
    const std::string place = averaged ? shown_workload(row.workload) : spec.shown_x(row.workload);
    html += fmt::format("<td>{}</td>", escaped(place));
  }
  html += fmt::format("<td>{}</td>", escaped(spec.shown_series(row.series)));
  html += number_cell(row.ours);
  if (columns.paper) {
    const std::string paper = row.paper == nullptr ? "–" : escaped(shown_printed(*row.paper));
    html += fmt::format("<td class=\"n\">{}</td>", paper);
  }
  if (columns.to_paper) html += number_cell(row.to_paper);
  if (columns.to_baseline) html += number_cell(row.to_baseline, true);
  if (columns.paper_to_baseline) html += number_cell(row.paper_to_baseline);
  return html + "</tr>\n";
}

}  // namespace

std::string comparison_table(const std::vector<Comparison>& comparisons, const Origin& origin,
                             const DataSpec& spec) {
  if (comparisons.empty() || comparisons.front().rows.empty()) return "";
  const Columns columns = columns_of(comparisons, spec);
  std::string rows;
  std::size_t count = 0;
  bool incomplete = false;
  for (const Comparison& comparison : comparisons) {
    if (comparison.averaged && comparison.used != comparison.total) incomplete = true;
    for (const Compared& row : comparison.rows) {
      // A baseline normalized by itself is 1 and says nothing; a cost of 0 does.
      const bool trivial =
          comparison.normalized && row.series == comparison.baseline && row.ours == 1;
      if (trivial) continue;
      rows += row_html(columns, row, comparison.averaged, spec);
      ++count;
    }
  }
  std::string html =
      fmt::format("<div class=\"scroll\"><table>\n{}<tbody>\n{}</tbody></table></div>\n",
                  header(columns, comparisons.front(), spec), rows);
  if (count > kRowsShown) {
    html =
        fmt::format("<details><summary>{}</summary>\n{}</details>\n", count_of(count, "row"), html);
  }
  if (incomplete) {
    html += fmt::format(
        "<p class=\"small\">Averages over the points that every series has: {} of "
        "{}.</p>\n",
        comparisons.front().used, comparisons.front().total);
  }
  if (columns.paper && !origin.modelled()) {
    html +=
        "<p class=\"small\">The paper's testbed is not this host: compare ratios, not absolute "
        "numbers.</p>\n";
  }
  return html;
}

}  // namespace perdura::report
