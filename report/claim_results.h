#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/contents.h"

namespace perdura::report {

/// The result of one claim in one run (docs/claims.md). A run whose sweep is incomplete measures no
/// claims.
struct ClaimResult {
  enum class Outcome { holds, differs, not_measured, not_covered };

  const ReportedPaper* paper = nullptr;
  const Claim* claim = nullptr;
  Outcome outcome = Outcome::not_measured;
  std::string run;  ///< name of its folder; empty if there is none
  Origin origin;    ///< of its rows
  /// The measured value, in words or as a number in the claim's unit. If there is none: which run
  /// would measure the claim, how far the run has come, or why the claim is not covered.
  std::string measured;
  /// The deviation in percent of the reported value; for two values that should be equal, their
  /// difference in percent.
  std::optional<double> deviation;
  std::vector<std::size_t> notes;  ///< notes of the paper that explain a difference
  std::string quantity{};          ///< "average latency, YCSB-C, Erda"
};

std::string_view to_string(ClaimResult::Outcome outcome);  // "holds", "not covered", ...

/// As printed: "2·N", "∞".
std::string shown_printed(const Claim& claim);
/// The reported value with its unit. For a claim about an order, only the fact that it is one; the
/// claim's words give the order.
std::string shown_reported(const Claim& claim);
/// "+3.1 %", or "–" if there is no deviation.
std::string shown_deviation(const ClaimResult& result);

/// Measures all claims of the papers. Returns a result for each run that measures a claim, and one
/// for each claim that no run measures. An exact number is measured only on a model of the paper's
/// testbed.
std::vector<ClaimResult> measure_claims(const Contents& contents,
                                        const std::vector<ResultFolder>& folders,
                                        const Papers& papers);

/// The outcomes of the claims of one basis.
struct ClaimScore {
  std::size_t holds = 0;
  std::size_t differs = 0;

  std::size_t size() const { return holds + differs; }
};

/// Predictions are counted separately, since a fitted number or an input that holds does not
/// validate the model.
struct ClaimCounts {
  ClaimScore predictions;
  ClaimScore fitted;
  ClaimScore inputs;
  std::size_t not_measured = 0;
  std::size_t not_covered = 0;

  /// "of 11 predictions, 9 hold and 2 differ; of 3 fitted, 3 hold and none differs; ..."
  std::string words() const;
};
ClaimCounts count_claims(const std::vector<ClaimResult>& results);

}  // namespace perdura::report
