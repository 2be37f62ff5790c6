// A comparison for people, for programs, and as a figure.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "harness/schema/error.h"
#include "report/compare/comparison.h"

namespace perdura::compare {

/// A table with a line for each quantity of each point, worse ones first, followed by what was not
/// compared. Values that all points share are stated once, above it.
std::string as_text(const Comparison& comparison);

/// The same with all digits, and every column of each point.
std::string as_json(const Comparison& comparison);

/// One line that says that there are too few repetitions, and how many are needed; "" if there are
/// enough.
std::string too_few_repetitions(const Comparison& comparison);

/// One line that says how many points b, the second of the two results, has lost, and names the
/// first of them; "" if none.
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
schema::Expected<void> draw(const Comparison& comparison, const FigureOptions& options);

/// More rows would not be legible.
inline constexpr std::size_t kFigureRows = 60;

/// The data of the figure (docs/figures.md).
std::string figure_csv(const Comparison& comparison);

/// Names a point by the values that tell it apart from the others, such as "erda / workloada / read
/// / value_size 64".
class PointNames {
 public:
  explicit PointNames(const Comparison& comparison);

  std::string name(const Point& point) const;
  /// The values that all points share: "platform shm, profile host".
  const std::string& common() const { return common_; }

 private:
  std::vector<std::string_view> columns_;
  std::vector<bool> named_;  ///< per column
  std::string common_;
};

}  // namespace perdura::compare
