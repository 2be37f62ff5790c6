#include <fmt/format.h>

#include <algorithm>

#include "harness/schema/quantity.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

using Blocks = std::vector<FormulaBlock>;

std::size_t equal_rows(const FormulaBlock& block) {
  return static_cast<std::size_t>(std::count_if(block.rows.begin(), block.rows.end(),
                                                [](const FormulaRow& row) { return row.equal; }));
}

std::vector<std::string> distinct(const Blocks& blocks, std::string FormulaBlock::*member) {
  std::vector<std::string> values;
  for (const FormulaBlock& block : blocks) {
    if (std::find(values.begin(), values.end(), block.*member) == values.end()) {
      values.push_back(block.*member);
    }
  }
  return values;
}

Cell overview_cell(const FormulaBlock& block) {
  if (block.formula == nullptr) return {.text = "no formula in the paper"};
  const std::size_t equal = equal_rows(block);
  return {.text = shown_printed(*block.formula),
          .below = fmt::format("{} of {} equal", equal, block.rows.size()),
          .below_css = equal == block.rows.size() ? "yes" : "no"};
}

ShownRow case_row(const FormulaRow& row, bool has_formula) {
  const bool differs = has_formula && !row.equal;
  return {{{row.key_size, "n"},
           {row.x, "n"},
           {fmt::format("{:.10g}", row.counted), "n"},
           {has_formula ? fmt::format("{:.10g}", row.formula) : "–", "n"},
           {!has_formula ? "–"
            : row.equal  ? "yes"
                         : "no",
            differs ? "n no" : "n"}}};
}

}  // namespace

ShownTable formula_overview(const TableResult& table) {
  const Blocks& blocks = table.data.formulas;
  const auto workloads = distinct(blocks, &FormulaBlock::workload);
  ShownTable shown{.head = {{{{schema::shown_name(table.spec.series)}}}}};
  for (const std::string& workload : workloads) {
    shown.head[0].cells.push_back({schema::shown_workload(workload)});
  }
  for (const std::string& series : distinct(blocks, &FormulaBlock::series)) {
    ShownRow& row = shown.rows.emplace_back(ShownRow{{{table.spec.shown_series(series)}}});
    for (const std::string& workload : workloads) {
      const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const auto& each) {
        return each.series == series && each.workload == workload;
      });
      row.cells.push_back(block == blocks.end() ? Cell{"–"} : overview_cell(*block));
    }
  }
  return shown;
}

ShownTable formula_cases(const TableResult& table) {
  const schema::DataSpec& spec = table.spec;
  const std::string over =
      spec.x == "value_size" ? "Value" : std::string(spec.schema.quantity(spec.x).axis);
  ShownTable shown{
      .head = {{{{"Key", "n"}, {over, "n"}, {"Counted", "n"}, {"Formula", "n"}, {"Equal", "n"}}}},
      .summary = "Every case"};
  bool all_equal = true;
  for (const std::string& workload : distinct(table.data.formulas, &FormulaBlock::workload)) {
    for (const FormulaBlock& block : table.data.formulas) {
      if (block.workload != workload) continue;
      all_equal = all_equal && equal_rows(block) == block.rows.size();
      const std::string formula =
          block.formula == nullptr ? "no formula in the paper" : shown_printed(*block.formula);
      shown.rows.push_back({{{.text = fmt::format("{}, {}: {}", schema::shown_workload(workload),
                                                  spec.shown_series(block.series), formula),
                              .columns = 5}},
                            true});
      for (const FormulaRow& row : block.rows) {
        shown.rows.push_back(case_row(row, block.formula != nullptr));
      }
    }
  }
  // A table in which everything agrees is folded away; one with a difference must be visible.
  shown.fold = all_equal ? ShownTable::Fold::closed : ShownTable::Fold::open;
  return shown;
}

}  // namespace perdura::report
