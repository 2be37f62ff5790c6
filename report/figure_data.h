#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/schema/error.h"
#include "harness/schema/spec.h"
#include "report/points.h"

namespace perdura::report {

/// One drawn point: the repetitions of one (series, x), in the unit in which the quantity is shown.
struct DrawnPoint {
  double mean = 0;        ///< infinite when normalized by a cost of 0
  double half_width = 0;  ///< of the 95 % confidence interval; 0 with one repetition
  std::size_t repetitions = 0;
  std::size_t noisy = 0;  ///< number of repetitions on a host that was not quiet
  double at = 0;          ///< mean of the column `at`, in its unit, if the figure has one
};

/// A row that matched a figure but was not drawn, and the reason.
struct OmittedRow {
  std::size_t row = 0;
  std::string reason;
};

struct Series {
  std::string name;
  std::size_t order = 0;  ///< its position in the order of the report
  std::size_t style = 0;  ///< color and dash (styles.h)
  /// The guarantees of its points after a power failure, "atomic" or "atomic/durable"; empty:
  /// unknown.
  std::string guarantee{};
};

struct FigureData {
  std::string unit;             ///< of the points: us, kop/s, ratio
  std::vector<Series> series;   ///< only those with a point
  std::vector<std::string> xs;  ///< ascending if numeric, otherwise in the order of the sweep
  std::map<std::pair<std::string, std::string>, DrawnPoint> points;  ///< by series and x
  std::vector<std::size_t> rows;                                     ///< rows that were drawn
  std::vector<OmittedRow> omitted;  ///< rows that matched but were not drawn

  /// True if the series' known guarantees differ.
  bool guarantees_differ() const;
  const DrawnPoint* find(const std::string& series_name, const std::string& x) const;
};

/// The names of series in the order in which figures and tables show them.
using SeriesOrder = std::vector<std::string>;

/// Picks the rows of `candidates` that `spec` selects, omits invalid ones, normalizes, and averages
/// the repetitions. `candidates` must have one provenance. Error: two rows of the same point that
/// `where` does not tell apart.
schema::Expected<FigureData> collect(const Points& points,
                                     const std::vector<std::size_t>& candidates,
                                     const schema::DataSpec& spec, const SeriesOrder& order);

/// Average over the x values at which every series has a point, so that no series gains from
/// a point that another one lacks. `used` of `total` x values took part.
struct Averages {
  std::map<std::string, double> by_series;
  std::size_t used = 0;
  std::size_t total = 0;
};
Averages average_over_x(const FigureData& data);

/// Half the width of the 95 % confidence interval of the mean, by Student's t; 0 for one sample.
double confidence_half_width(const std::vector<double>& samples);

}  // namespace perdura::report
