#include <fmt/format.h>

#include <algorithm>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

std::size_t equal_rows(const FormulaBlock& block) {
  return static_cast<std::size_t>(std::count_if(block.rows.begin(), block.rows.end(),
                                                [](const FormulaRow& row) { return row.equal; }));
}

std::vector<std::string> distinct(const std::vector<FormulaBlock>& blocks,
                                  std::string FormulaBlock::*member) {
  std::vector<std::string> values;
  for (const FormulaBlock& block : blocks) {
    if (std::find(values.begin(), values.end(), block.*member) == values.end()) {
      values.push_back(block.*member);
    }
  }
  return values;
}

std::string verdict(const FormulaBlock& block) {
  if (block.formula == nullptr) return "no formula in the paper";
  const std::size_t equal = equal_rows(block);
  return fmt::format("{}<br><span class=\"{}\">{} of {} equal</span>",
                     escaped(shown_printed(*block.formula)),
                     equal == block.rows.size() ? "yes" : "no", equal, block.rows.size());
}

/// The shape of the paper's table: series down, operations across.
std::string overview_table(const TableResult& table) {
  const auto workloads = distinct(table.data.formulas, &FormulaBlock::workload);
  std::string html = fmt::format("<div class=\"scroll\"><table>\n<thead><tr><th>{}</th>",
                                 escaped(shown_name(table.spec.series)));
  for (const std::string& workload : workloads) {
    html += fmt::format("<th>{}</th>", escaped(shown_workload(workload)));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::string& series : distinct(table.data.formulas, &FormulaBlock::series)) {
    html += fmt::format("<tr><td>{}</td>", escaped(table.spec.shown_series(series)));
    for (const std::string& workload : workloads) {
      const auto block = std::find_if(table.data.formulas.begin(), table.data.formulas.end(),
                                      [&](const FormulaBlock& each) {
                                        return each.series == series && each.workload == workload;
                                      });
      html +=
          fmt::format("<td>{}</td>", block == table.data.formulas.end() ? "–" : verdict(*block));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string formula_table(const std::vector<FormulaBlock>& blocks, const std::string& workload,
                          const DataSpec& spec) {
  std::string html = fmt::format(
      "<div class=\"scroll\"><table>\n<thead><tr><th class=\"n\">Key</th>"
      "<th class=\"n\">{}</th><th class=\"n\">Counted</th>"
      "<th class=\"n\">Formula</th><th class=\"n\">Equal</th></tr></thead>\n",
      spec.x == "value_size" ? "Value" : escaped(spec.schema.quantity(spec.x).axis));
  for (const FormulaBlock& block : blocks) {
    if (block.workload != workload) continue;
    html += fmt::format("<tbody><tr class=\"head\"><th colspan=\"5\">{}: {}</th></tr>\n",
                        escaped(spec.shown_series(block.series)),
                        block.formula == nullptr ? "no formula in the paper"
                                                 : escaped(shown_printed(*block.formula)));
    for (const FormulaRow& row : block.rows) {
      const bool known = block.formula != nullptr;
      html += fmt::format(
          "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td>"
          "<td class=\"n\">{}</td><td class=\"n\">{}</td>"
          "<td class=\"n{}\">{}</td></tr>\n",
          escaped(row.key_size), escaped(row.x), fmt::format("{:.10g}", row.counted),
          known ? fmt::format("{:.10g}", row.formula) : "–", known && !row.equal ? " no" : "",
          known ? (row.equal ? "yes" : "no") : "–");
    }
    html += "</tbody>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string table_label(const TableResult& table) {
  const TableSpec& spec = table.spec;
  const bool range = spec.id.find('-') != std::string::npos;
  const bool figures = spec.kind == TableSpec::Kind::average && range;
  return fmt::format("{}{} {}", table.paper_name.empty() ? "" : table.paper_name + ", ",
                     figures ? "Figures" : "Table", shown_range(spec.id));
}

std::string table_block(const TableResult& table, const std::vector<std::string>& note_anchors) {
  std::string html =
      fmt::format("<div class=\"block\" id=\"{}\">\n<h3>{} {}</h3>\n<p>{}</p>\n", table.name,
                  escaped(table_label(table)), badge(table.origin), escaped(table.spec.title));
  html += unfinished_line(*table.folder);
  if (table.spec.kind == TableSpec::Kind::average) {
    html += comparison_table(table.data.comparisons, table.origin, table.spec);
    if (table.data.comparisons.empty()) html += "<p class=\"none\">No valid row.</p>\n";
  } else if (table.data.formulas.empty()) {
    html += "<p class=\"none\">No valid row.</p>\n";
  } else {
    html += fmt::format(
                "<p class=\"small\">{}, counted, beside the paper's formula. In a formula, key is "
                "the size of the key and N that of the key-value pair.</p>\n",
                escaped(table.spec.schema.quantity(table.spec.y).axis)) +
            overview_table(table);
    const bool all_equal = std::all_of(
        table.data.formulas.begin(), table.data.formulas.end(),
        [](const FormulaBlock& block) { return equal_rows(block) == block.rows.size(); });
    // What agrees may be folded away; what does not must be seen.
    html += fmt::format("<details{}><summary>Every case</summary>\n<div class=\"thirds\">\n",
                        all_equal ? "" : " open");
    for (const std::string& workload : distinct(table.data.formulas, &FormulaBlock::workload)) {
      html += fmt::format("<div><h4>{}</h4>{}</div>\n", escaped(shown_workload(workload)),
                          formula_table(table.data.formulas, workload, table.spec));
    }
    html += "</div></details>\n";
  }
  return html +
         fmt::format("<p class=\"small\">{}<a href=\"figures/{}.csv\">data</a></p>\n</div>\n",
                     note_links(note_anchors), table.name);
}

}  // namespace perdura::report
