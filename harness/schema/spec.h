#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/schema/error.h"
#include "harness/schema/schema.h"

namespace perdura::schema {

/// A column and its accepted values; numbers match by value, so "16" equals "16.0".
struct Condition {
  std::string column;
  std::vector<std::string> any_of;

  bool holds(const std::string& cell) const;
};

/// Known names in the column `system`.
struct SystemNames {
  /// From the experiment, or else from the result folder.
  std::map<std::string, std::string, std::less<>> titles;
  std::set<std::string, std::less<>> variants;

  /// A system's name as it is shown.
  std::string shown(std::string_view system) const;
};

/// Which rows of points.csv a figure or table is made of, and which columns it uses.
struct DataSpec {
  std::string id;  ///< number of the figure or table in the paper
  std::string title;
  std::string x;                    ///< column of the x-axis, or the one that an average runs over
  std::vector<std::string> x_more;  ///< further columns: a place on the axis for each combination
  std::string at;                   ///< column of the position at which a place is drawn; empty: x
  std::string y;                    ///< column of the numbers
  std::string series = "system";    ///< one line or group of bars per value of this column
  std::vector<Condition> where;
  std::optional<Condition> normalize;  ///< divide by the row that agrees in all but this column
  std::string baseline;                ///< series that ratios refer to; empty: the first one
  std::string paper;                   ///< paper in results/claims.csv to compare with; empty: none
  SystemNames systems;
  Schema schema;         ///< of the folders that it applies to
  std::size_t line = 0;  ///< in experiment.toml, for error messages
  std::string place;     ///< file and line

  /// A value of the series' column as it is shown.
  std::string shown_series(std::string_view value) const;
  /// A place on the x-axis, and the axis itself with its unit, as they are shown.
  std::string shown_x(std::string_view x_value) const;
  std::string shown_x_axis() const;
  /// The title, with unit, of the axis that places are drawn on.
  std::string shown_position_axis() const;
  /// True if the places on the x-axis are unrelated things, so that an average over them means
  /// nothing.
  bool point_by_point() const { return x == "workload" || !x_more.empty() || !at.empty(); }
};

struct FigureSpec : DataSpec {
  enum class Data {
    points,    ///< x and y are columns of points.csv
    timeline,  ///< the course of one point, from timeline.csv
  };
  Data data = Data::points;
  std::string data_place;  ///< where `data` is set, with the file
  std::string plot;        ///< plots/<plot>.gp
  std::string plot_place;  ///< where `plot` is set, with the file
};

struct TableSpec : DataSpec {
  enum class Kind {
    formula,  ///< each row beside the paper's formula, evaluated for the row's sizes
    average,  ///< averages over x beside the paper's averages
  };
  Kind kind = Kind::formula;
  std::string group = "workload";  ///< one block of the table per value of this column
};

/// The [[figure]] and [[table]] entries of an experiment (docs/figures.md).
struct Specs {
  std::filesystem::path file;
  SystemNames systems;
  std::vector<FigureSpec> figures;
  std::vector<TableSpec> tables;
};

/// Errors: invalid TOML; a key that is missing, unknown or of the wrong type; a column that
/// points.csv does not have according to `schema`; an id used twice.
Expected<Specs> read_specs(const std::filesystem::path& experiment_toml, const Schema& schema = {});

/// The kinds of places that a script can draw on its x-axis.
enum class XAxis { any, numbers, positive_numbers };
/// Reads it from a line of the script, "# x-axis: numbers" or "# x-axis: numbers above 0"; `any` if
/// there is no such line. Error: the script cannot be read.
Expected<XAxis> x_axis_of(const std::filesystem::path& script);

/// Error: a figure's script is not in the folder, cannot be read, or cannot draw the figure's
/// column on its x-axis.
Expected<void> check_plots(const Specs& specs, const std::filesystem::path& plots);

}  // namespace perdura::schema
