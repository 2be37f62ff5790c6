#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

std::string colons(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, " : "));
}

/// "1 : 1.47 : 1.47". Averages of a normalized cost are ratios to the baseline already.
struct Ratios {
  std::vector<std::string> names;
  std::vector<std::string> ours;
  std::vector<std::string> paper;
};

std::string baseline_mark(const Comparison& comparison, const Compared& row) {
  return comparison.normalized && row.ours == 0 ? "0" : "1";
}

Ratios ratios_of(const Comparison& comparison, const DataSpec& spec) {
  Ratios ratios;
  bool paper_complete = true;
  const char* paper_baseline = "1";
  for (const Compared& row : comparison.rows) {
    // Over a baseline of 0 every cost is infinite; to write 1 for the baseline would be wrong.
    if (row.paper != nullptr && std::isinf(row.paper->number)) paper_baseline = "0";
  }
  for (const Compared& row : comparison.rows) {
    ratios.names.push_back(escaped(spec.shown_series(row.series)));
    if (row.series == comparison.baseline) {
      ratios.ours.push_back(baseline_mark(comparison, row));
      ratios.paper.push_back(paper_baseline);
      continue;
    }
    const auto ours = comparison.normalized ? std::optional(row.ours) : row.to_baseline;
    ratios.ours.push_back(ours ? shown_number(*ours) : "–");
    const auto paper = comparison.normalized && row.paper != nullptr
                           ? std::optional(row.paper->number)
                           : row.paper_to_baseline;
    if (!paper) paper_complete = false;
    ratios.paper.push_back(paper ? shown_number(*paper) : "–");
  }
  if (!paper_complete) ratios.paper.clear();
  return ratios;
}

/// One average of every series, beside the paper's.
struct Finding {
  std::string quantity;
  std::string workload;  ///< empty: of several or none
  std::string title;     ///< of the figure or table
  Ratios ratios;
  std::string anchor;
};

std::string finding_rows(const std::vector<Finding>& findings, bool paper) {
  std::string html;
  std::string quantity;
  for (const Finding& finding : findings) {
    if (finding.quantity != quantity) {
      quantity = finding.quantity;
      html += fmt::format("<tr class=\"head\"><th colspan=\"{}\">{}</th></tr>\n", paper ? 3 : 2,
                          quantity);
    }
    html += fmt::format("<tr><td><a href=\"#{}\">{}</a></td><td class=\"n\"><b>{}</b></td>",
                        finding.anchor, finding.workload.empty() ? finding.title : finding.workload,
                        colons(finding.ratios.ours));
    if (paper) {
      html +=
          fmt::format("<td class=\"n\">{}</td>",
                      finding.ratios.paper.empty() ? "not stated" : colons(finding.ratios.paper));
    }
    html += "</tr>\n";
  }
  return html;
}

/// The first finding as a sentence, which says how to read the table of all that follows.
std::string finding_table(const std::vector<Finding>& findings, const std::string& names) {
  bool paper = false;
  for (const Finding& finding : findings) paper = paper || !finding.ratios.paper.empty();
  const Finding& first = findings.front();
  std::string html = fmt::format(
      "<p>{}{}, {}: {}{}. All ratios, in this order:</p>\n", capitalized(first.quantity),
      first.workload.empty() ? "" : " for " + first.workload, names, colons(first.ratios.ours),
      first.ratios.paper.empty() ? "" : fmt::format(" (paper {})", colons(first.ratios.paper)));
  return html + fmt::format(
                    "<div class=\"scroll\"><table>\n<thead><tr><th></th>"
                    "<th class=\"n\">this run</th>{}</tr></thead>\n<tbody>\n{}"
                    "</tbody></table></div>\n",
                    paper ? "<th class=\"n\">paper</th>" : "", finding_rows(findings, paper));
}

}  // namespace

std::string formula_sentence(const TableResult& table) {
  if (!table.folder->unfinished().empty()) return "";
  std::size_t equal = 0;
  std::size_t all = 0;
  std::vector<std::string> differing;
  for (const FormulaBlock& block : table.data.formulas) {
    if (block.formula == nullptr) continue;
    all += block.rows.size();
    const auto agreeing = static_cast<std::size_t>(std::count_if(
        block.rows.begin(), block.rows.end(), [](const FormulaRow& row) { return row.equal; }));
    equal += agreeing;
    if (agreeing == block.rows.size()) continue;
    differing.push_back(fmt::format("{}, {} ({} of {})", table.spec.shown_series(block.series),
                                    shown_workload(block.workload), block.rows.size() - agreeing,
                                    block.rows.size()));
  }
  if (all == 0) return "";
  return fmt::format(
      "{}: what was counted equals the paper's formula in <b>{} of {}</b> cases "
      "(<a href=\"#{}\">{}</a>){}.",
      escaped(capitalized(table.spec.schema.quantity(table.spec.y).noun)), equal, all, table.name,
      escaped(table_label(table)),
      differing.empty() ? "" : escaped("; different: " + listed(differing)));
}

std::string findings(const Section& section) {
  std::map<std::string, std::vector<Finding>> by_names;
  std::vector<std::string> order;
  const auto add = [&](const Comparison& comparison, const DataSpec& spec,
                       const std::string& anchor) {
    if (comparison.rows.size() < 2) return;
    const Ratios ratios = ratios_of(comparison, spec);
    const std::string names = colons(ratios.names);
    if (by_names.find(names) == by_names.end()) order.push_back(names);
    const std::string& workload = comparison.rows.front().workload;
    by_names[names].push_back({std::string(spec.schema.quantity(spec.y).noun),
                               escaped(shown_workload(workload)), escaped(spec.title), ratios,
                               anchor});
  };
  for (const FigureResult& figure : section.figures) {
    if (!figure.comparison.averaged || !figure.timeline.empty()) continue;
    if (!figure.folder->unfinished().empty()) continue;
    add(figure.comparison, figure.spec, "fig-" + figure.name);
  }
  for (const TableResult& table : section.tables) {
    if (!table.folder->unfinished().empty()) continue;
    for (const Comparison& comparison : table.data.comparisons) {
      add(comparison, table.spec, table.name);
    }
  }
  if (order.empty()) return "";
  std::string html = fmt::format("<div class=\"block\">\n<h3>Averages, as ratios {}</h3>\n",
                                 badge(section.origin));
  for (const std::string& names : order) html += finding_table(by_names[names], names);
  return html + "</div>\n";
}

}  // namespace perdura::report
