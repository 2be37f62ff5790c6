// A comparison for people, for programs, and as a figure.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "harness/schema/error.h"
#include "report/compare/comparison.h"

namespace perdura::compare {

/// A table, a line for each quantity of each point, worse ones first; then what was not compared.
/// What all points have in common stands above it once.
std::string as_text(const Comparison& comparison);

/// The same with all digits, and every column of each point.
std::string as_json(const Comparison& comparison);

/// One line: that the repetitions are too few, and how many are needed. Empty if they are enough.
std::string too_few_repetitions(const Comparison& comparison);

/// One line: how many points b lost, and the first of them. Empty if none.
std::string lost_points(const Comparison& comparison, bool ignore_missing);

struct FigureOptions {
  std::filesystem::path plots;  ///< the folder of gnuplot scripts
  std::filesystem::path out;    ///< gets comparison.csv, .gp, .svg, .png, and plots/
  std::string title;
  std::string gnuplot = "gnuplot";
  std::function<void()> while_drawing{};  ///< as in report::DrawingPlace
};

/// Draws the changes with their intervals, the first kFigureRows entries of the comparison.
/// Errors: the folder cannot be written; gnuplot is missing or failed.
report::Expected<void> draw(const Comparison& comparison, const FigureOptions& options);

/// More would not be legible.
inline constexpr std::size_t kFigureRows = 60;

/// The data of the figure (docs/figures.md).
std::string figure_csv(const Comparison& comparison);

/// Of a point, the values that tell it apart from the others, such as "erda / workloada / read /
/// value_size 64".
class PointNames {
 public:
  explicit PointNames(const Comparison& comparison);

  std::string name(const Point& point) const;
  /// What all points have in common: "platform shm, profile host".
  const std::string& common() const { return common_; }

 private:
  std::vector<std::string_view> columns_;
  std::vector<bool> named_;  ///< of each column
  std::string common_;
};

}  // namespace perdura::compare
