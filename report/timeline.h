#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/schema/csv_table.h"
#include "harness/schema/error.h"
#include "harness/schema/spec.h"
#include "report/figure_data.h"
#include "report/points.h"

namespace perdura::report {

/// One interval of a point's timeline, from timeline.csv (docs/results.md). Absent values were not
/// measured.
struct TimelineRow {
  double time_ms = 0;
  double operations = 0;
  std::optional<double> latency_mean_us;
  std::optional<double> latency_max_us;
  std::optional<double> free_percent;
  std::optional<double> cleanings;
  std::optional<double> cleanings_now;
};

/// The rows of a timeline.csv, schema version 1, checked when read.
class Timelines {
 public:
  static schema::Expected<Timelines> read(const std::filesystem::path& file);

  /// The timeline of the point that a row of points.csv belongs to; empty if it was not recorded.
  std::vector<TimelineRow> of(const Points& points, std::size_t row) const;

 private:
  std::vector<std::string> identities_;  ///< per row: the cells that identify its point
  std::vector<TimelineRow> rows_;
};

/// The one row of points.csv that a figure over time shows, which is the first repetition; other
/// matching rows are returned as omitted. Empty if no row is valid. Errors: an unknown column;
/// `where` leaves several points.
schema::Expected<FigureData> choose_point(const Points& points,
                                          const std::vector<std::size_t>& candidates,
                                          const schema::FigureSpec& spec, const SeriesOrder& order);

/// A summary of a timeline: mean latency while something was being cleaned, and otherwise.
struct TimelineSummary {
  double cleanings = 0;         ///< number that ended within it
  double cleaning_percent = 0;  ///< of all intervals
  std::optional<double> mean_cleaning_us;
  std::optional<double> mean_otherwise_us;
  std::optional<double> max_cleaning_us;
  std::optional<double> max_otherwise_us;
};

/// Returns nullopt if the system does not report its cleanings or never cleaned.
std::optional<TimelineSummary> summarize(const std::vector<TimelineRow>& rows);

}  // namespace perdura::report
