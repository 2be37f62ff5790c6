#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/figure_data.h"
#include "report/reported.h"

namespace perdura::report {

/// One number of ours and, if there is one, the paper's beside it.
struct Compared {
  std::string workload;
  std::string series;
  double ours = 0;
  std::optional<double> to_baseline;  ///< ours over the baseline's
  const Claim* paper = nullptr;
  std::optional<double> to_paper;           ///< ours over the paper's
  std::optional<double> paper_to_baseline;  ///< the paper's over its baseline's
};

struct Comparison {
  std::string unit;
  std::string baseline;
  bool normalized = false;  ///< the numbers are already ratios to the baseline
  bool averaged = true;     ///< rows are averages over x; otherwise single points
  std::size_t used = 0;     ///< x values averaged over, of `total`
  std::size_t total = 0;
  std::vector<Compared> rows;

  bool has_paper() const;
};

/// Context of a comparison besides the data. `paper` is null if the figure names none. Measured
/// numbers are compared with a paper's only by ratio to the baseline, since the testbeds differ.
struct ComparisonContext {
  const schema::DataSpec& spec;
  const ReportedPaper* paper;
  bool modelled;
};

/// Averages over x for one workload.
/// Error: the paper's unit is not the figure's.
schema::Expected<Comparison> compare_averages(const FigureData& data, const std::string& workload,
                                              const ComparisonContext& context);

/// Point by point, for a figure whose x-axis is the workload.
schema::Expected<Comparison> compare_points(const FigureData& data,
                                            const ComparisonContext& context);

/// A row of a table of formulas: the counted value, and the value of the paper's formula.
struct FormulaRow {
  std::string key_size;
  std::string x;  ///< the value size, or whatever else the table ranges over
  double counted = 0;
  double formula = 0;
  bool equal = false;
};

/// All rows of one workload and one series.
struct FormulaBlock {
  std::string workload;
  std::string series;
  const Claim* formula = nullptr;  ///< null if the paper gives none
  std::vector<FormulaRow> rows;
};

struct TableData {
  std::vector<FormulaBlock> formulas;   ///< for a table of formulas
  std::vector<Comparison> comparisons;  ///< for a table of averages: one per group
  std::vector<std::size_t> rows;
  std::vector<OmittedRow> omitted;
};

schema::Expected<TableData> collect_table(const Points& points,
                                          const std::vector<std::size_t>& candidates,
                                          const schema::TableSpec& spec, const SeriesOrder& order,
                                          const ComparisonContext& context);

}  // namespace perdura::report
