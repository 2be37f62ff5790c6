#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/report/error.h"
#include "harness/report/points.h"
#include "harness/report/spec.h"

namespace perdura::report {

/// What a paper says is less than something else, in a form that can be checked on points.csv: of
/// two rows that agree in all key columns but those named, `lower` has the lower y.
struct Claim {
  std::string section;
  std::string text;  ///< in the paper's words, as far as possible
  std::string y = "latency_mean_us";
  std::vector<Condition> where;          ///< both rows
  std::vector<Condition> lower;          ///< the row with the lower y
  std::vector<Condition> higher;         ///< the row with the higher y
  std::vector<std::string> same;         ///< further columns that must agree
  std::vector<std::string> any;          ///< key columns that need not
  std::optional<double> within_percent;  ///< instead: the two differ by no more than this
  std::size_t line = 0;
};

struct ClaimResult {
  const Claim* claim = nullptr;
  std::size_t pairs = 0;
  std::size_t holding = 0;
  double least_ratio = 0;  ///< of the higher row's y to the lower's
  double largest_ratio = 0;
};

/// The [[claim]] entries of results/reported/<paper>-claims.toml (docs/figures.md).
Expected<std::vector<Claim>> read_claims(const std::filesystem::path& file);

/// Compares all pairs among the valid rows of `candidates`, which must be of one provenance, that
/// the claim is about. Error: a column that points.csv does not have.
Expected<ClaimResult> check(const Claim& claim, const std::filesystem::path& file,
                            const Points& points, const std::vector<std::size_t>& candidates);

}  // namespace perdura::report
