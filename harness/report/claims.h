#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/error.h"
#include "harness/report/points.h"
#include "harness/report/spec.h"

namespace perdura::report {

/// What a paper says in a text or a table, and how it is measured: a row of results/claims.csv
/// (docs/claims.md).
struct Claim {
  enum class Kind {
    exact,  ///< a number, or a formula of sizes
    ratio,  ///< a number that does not depend on how fast the testbed is
    order,  ///< of two, one is lower; or with a tolerance: they differ by no more
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
  bool fitted = false;            ///< a profile was fitted to it
  std::string note;

  double number = 0;  ///< of value; unused for a formula or an order
  std::size_t line = 0;

  bool is_formula() const { return figure.starts_with("Table "); }
};

/// "exact", "ratio" or "order".
std::string_view to_string(Claim::Kind kind);

/// All rows of a claims.csv, in its order. Errors: file, line, and what is wrong: a cell that
/// cannot be read, a column that points.csv does not have, an id used twice.
Expected<std::vector<Claim>> read_claims(const std::filesystem::path& file);

/// All pairs of rows that a claim with `lower` and `higher` is about: they agree in all key columns
/// but those named.
struct Pairs {
  std::vector<double> ratios;  ///< of the higher row's y to the lower's, in the order of the rows

  std::size_t size() const { return ratios.size(); }
  double least() const;
  double largest() const;
};

/// Among the valid rows of `candidates`, which must be of one provenance.
Pairs find_pairs(const Claim& claim, const Points& points,
                 const std::vector<std::size_t>& candidates);

/// In how many pairs an order holds.
std::size_t holding(const Claim& claim, const Pairs& pairs);

/// The mean of y over the valid rows of `candidates` that `where` asks for; nothing if there are
/// none.
std::optional<double> mean_of(const Claim& claim, const Points& points,
                              const std::vector<std::size_t>& candidates);

}  // namespace perdura::report
