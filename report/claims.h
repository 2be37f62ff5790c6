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

/// What a paper says in a text or a table, and how it is measured: a row of results/claims.csv
/// (docs/claims.md).
struct Claim {
  enum class Kind {
    exact,     ///< a number, or a formula of sizes
    ratio,     ///< a number that does not depend on how fast the testbed is
    at_least,  ///< a bound that holds in each row or pair of rows, on any testbed
    at_most,
    order,  ///< of two, one is lower; or with a tolerance: they differ by no more
  };
  /// How far the claim was known when the model was made.
  enum class Basis {
    prediction,  ///< nothing
    fitted,      ///< a value or a choice was made to meet it, or with it at hand, or it follows
                 ///< from one that was
    input,       ///< the number itself: the profile puts in what is measured
  };

  std::string id;
  std::string paper;
  std::string section;
  std::string figure;    ///< that shows it: "14", "22-25", "Table 1"
  std::string quantity;  ///< in words; of an order the paper's
  std::string workload;
  std::string system;
  std::string value;  ///< as printed; empty for an order
  std::string unit;
  Kind kind = Kind::exact;
  std::optional<double> tolerance;  ///< percent of the value; of an order: that the two may differ
  std::string tolerance_reason;
  std::vector<std::string> experiments;  ///< that measure it
  std::string y;                         ///< empty: it is what `figure` shows
  std::vector<Condition> where;          ///< rows that it is about
  std::vector<Condition> lower;          ///< of two rows the one with the lower y
  std::vector<Condition> higher;
  std::vector<std::string> any;   ///< key columns in which the two need not agree
  std::vector<std::string> same;  ///< further columns in which they must
  /// Each y is divided by that of the row that agrees in all key columns but these; empty: by none.
  std::vector<Condition> over;
  /// Of the columns that these name, those that only runs of some driver have.
  std::vector<std::string> declared;
  Basis basis = Basis::prediction;
  std::string note;
  std::string not_covered;  ///< why nothing here measures it; empty if something does

  double number = 0;  ///< of value; unused for a formula, an order or what is not covered
  std::size_t line = 0;

  /// Of a table a number is a formula, too, unless `y` says how it is measured.
  bool is_formula() const { return y.empty() && figure.starts_with("Table "); }
  /// Whether the figure or table of that id is the one, or one of those, that show it.
  bool is_about(std::string_view shown) const;
  bool is_bound() const { return kind == Kind::at_least || kind == Kind::at_most; }
};

std::string_view to_string(Claim::Kind kind);    // "exact", "ratio", "at least", ...
std::string_view to_string(Claim::Basis basis);  // "prediction", "fitted", "input"

/// All rows of a claims.csv, in its order. Errors: file, line, and what is wrong: a cell that
/// cannot be read, an id used twice.
Expected<std::vector<Claim>> read_claims(const std::filesystem::path& file);

/// All pairs of rows that a claim with `lower` and `higher` compares: the two rows agree in all key
/// columns but those that the claim names.
struct Pairs {
  std::vector<double> ratios;  ///< of the higher row's y to the lower's, in the order of the rows

  std::size_t size() const { return ratios.size(); }
  double least() const;
  double largest() const;
};

/// Among the valid rows of `candidates`, which must be of one provenance.
Pairs find_pairs(const Claim& claim, const Points& points,
                 const std::vector<std::size_t>& candidates);

/// The number of pairs in which the order holds.
std::size_t holding(const Claim& claim, const Pairs& pairs);

/// Each y of the valid rows of `candidates` that `where` asks for.
std::vector<double> values_of(const Claim& claim, const Points& points,
                              const std::vector<std::size_t>& candidates);

}  // namespace perdura::report
