#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/schema/error.h"
#include "harness/schema/spec.h"
#include "report/points.h"

namespace perdura::report {

/// A statement of a paper's text or table, and how it is measured: a row of results/claims.csv
/// (docs/claims.md).
struct Claim {
  enum class Kind {
    exact,     ///< a number, or a formula of sizes
    ratio,     ///< a number that does not depend on the testbed's speed
    at_least,  ///< a bound that holds in each row or pair of rows, on any testbed
    at_most,
    order,  ///< one row is lower than the other; with a tolerance: they differ by no more
  };
  /// Knowledge of the claim when the model was made.
  enum class Basis {
    prediction,  ///< none
    fitted,      ///< a value or a choice was made to meet it, or knowing it, or it follows
                 ///< from one that was
    input,       ///< the number itself: the profile contains the measured value
  };

  std::string id;
  std::string paper;
  std::string section;
  std::string figure;    ///< figure or table that shows it: "14", "22-25", "Table 1"
  std::string quantity;  ///< in words; for an order, the paper's words
  std::string workload;
  std::string system;
  std::string value;  ///< as printed; empty for an order
  std::string unit;
  Kind kind = Kind::exact;
  /// Percent of the value; for an order: by how much the two may differ.
  std::optional<double> tolerance;
  std::string tolerance_reason;
  std::vector<std::string> experiments;  ///< those that measure it
  std::string y;                         ///< empty: the column that `figure` shows
  std::vector<schema::Condition> where;  ///< rows that the claim is about
  std::vector<schema::Condition> lower;  ///< the row of a pair that has the lower y
  std::vector<schema::Condition> higher;
  std::vector<std::string> any;   ///< key columns in which the two rows may differ
  std::vector<std::string> same;  ///< further columns in which they must agree
  /// Each y is divided by that of the row that agrees in all key columns but these; empty: not
  /// divided.
  std::vector<schema::Condition> over;
  /// Columns named above that exist only in runs of some drivers.
  std::vector<std::string> declared;
  Basis basis = Basis::prediction;
  std::string note;
  std::string not_covered;  ///< why nothing here measures it; empty if something does

  double number = 0;  ///< the value; unused for a formula, an order or an uncovered claim
  std::size_t line = 0;

  /// In a table a number counts as a formula, too, unless `y` says how it is measured.
  bool is_formula() const { return y.empty() && figure.starts_with("Table "); }
  /// True if the figure or table with that id shows the claim.
  bool is_about(std::string_view shown) const;
  bool is_bound() const { return kind == Kind::at_least || kind == Kind::at_most; }
};

std::string_view to_string(Claim::Kind kind);    // "exact", "ratio", "at least", ...
std::string_view to_string(Claim::Basis basis);  // "prediction", "fitted", "input"

/// All rows of a claims.csv, in order. Errors, with file and line: a cell that cannot be parsed, an
/// id used twice.
schema::Expected<std::vector<Claim>> read_claims(const std::filesystem::path& file);

/// All pairs of rows that a claim with `lower` and `higher` compares: the two rows agree in all key
/// columns except those that the claim names.
struct Pairs {
  std::vector<double> ratios;  ///< y of the higher row divided by that of the lower, in row order

  std::size_t size() const { return ratios.size(); }
  double least() const;
  double largest() const;
};

/// Searches the valid rows of `candidates`, which must all have the same provenance.
Pairs find_pairs(const Claim& claim, const Points& points,
                 const std::vector<std::size_t>& candidates);

/// The number of pairs in which the claimed order holds.
std::size_t holding(const Claim& claim, const Pairs& pairs);

/// y of each valid row of `candidates` that `where` selects.
std::vector<double> values_of(const Claim& claim, const Points& points,
                              const std::vector<std::size_t>& candidates);

}  // namespace perdura::report
