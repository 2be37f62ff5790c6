#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/comparison.h"
#include "report/formula.h"

namespace perdura::report {
namespace {

/// The values of a column, in the order of the sweep.
std::vector<std::string> values_of(const Points& points, const std::vector<std::size_t>& rows,
                                   const std::string& column) {
  std::vector<std::string> values;
  for (const std::size_t row : rows) {
    const std::string& value = points.text(row, column);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

std::vector<std::size_t> rows_with(const Points& points, const std::vector<std::size_t>& rows,
                                   const std::string& column, const std::string& value) {
  std::vector<std::size_t> kept;
  for (const std::size_t row : rows) {
    if (points.text(row, column) == value) kept.push_back(row);
  }
  return kept;
}

void take_rows(TableData& table, const FigureData& data) {
  table.rows.insert(table.rows.end(), data.rows.begin(), data.rows.end());
  table.omitted.insert(table.omitted.end(), data.omitted.begin(), data.omitted.end());
}

schema::Expected<void> add_formulas(TableData& table, const FigureData& data,
                                    const std::string& workload, const std::string& key_size,
                                    const schema::TableSpec& spec, const ReportedPaper& paper) {
  for (const Series& series : data.series) {
    const Claim* formula =
        paper.find("Table " + spec.id, Claim::Kind::exact, workload, series.name);
    auto block = std::find_if(table.formulas.begin(), table.formulas.end(), [&](const auto& each) {
      return each.workload == workload && each.series == series.name;
    });
    if (block == table.formulas.end()) {
      block = table.formulas.insert(block, FormulaBlock{workload, series.name, formula, {}});
    }
    for (const std::string& x : data.xs) {
      const DrawnPoint* point = data.find(series.name, x);
      if (point == nullptr) continue;
      FormulaRow row{key_size, x, point->mean, 0, false};
      if (formula != nullptr) {
        const auto key = schema::parse_number(key_size);
        const auto value = schema::parse_number(x);
        if (!key || !value) {
          return schema::fail(fmt::format(
              "table {}: its formula is of key_size and {}, and a row lacks one", spec.id, spec.x));
        }
        const auto expected = evaluate(formula->value, {*key, *value});
        if (!expected) return tl::unexpected(expected.error());
        row.formula = *expected;
        // Counted values are quotients in decimal, so they are not exact; but even one byte in a
        // million operations is a difference.
        row.equal = std::abs(row.counted - row.formula) < 1e-6;
      }
      block->rows.push_back(std::move(row));
    }
  }
  return {};
}

}  // namespace

schema::Expected<TableData> collect_table(const Points& points,
                                          const std::vector<std::size_t>& candidates,
                                          const schema::TableSpec& spec, const SeriesOrder& order,
                                          const ComparisonContext& context) {
  TableData table;
  for (const std::string& group : values_of(points, candidates, spec.group)) {
    const auto in_group = rows_with(points, candidates, spec.group, group);
    if (spec.kind == schema::TableSpec::Kind::average) {
      auto data = collect(points, in_group, spec, order);
      if (!data) return tl::unexpected(data.error());
      take_rows(table, *data);
      if (data->points.empty()) continue;
      auto comparison = compare_averages(*data, group, context);
      if (!comparison) return tl::unexpected(comparison.error());
      table.comparisons.push_back(std::move(*comparison));
      continue;
    }
    for (const std::string& key_size : values_of(points, in_group, "key_size")) {
      auto data = collect(points, rows_with(points, in_group, "key_size", key_size), spec, order);
      if (!data) return tl::unexpected(data.error());
      take_rows(table, *data);
      if (auto added = add_formulas(table, *data, group, key_size, spec, *context.paper); !added) {
        return tl::unexpected(added.error());
      }
    }
  }
  return table;
}

}  // namespace perdura::report
