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

namespace perdura::report {

/// A column and the values of it that are wanted; numbers match by value, "16" equals "16.0".
struct Condition {
  std::string column;
  std::vector<std::string> any_of;

  bool holds(const std::string& cell) const;
};

/// What is known of the names in the column `system`.
struct SystemNames {
  /// Of the experiment, else of the result folder.
  std::map<std::string, std::string, std::less<>> titles;
  std::set<std::string, std::less<>> variants;

  /// As people read it.
  std::string shown(std::string_view system) const;
};

/// Which rows of points.csv a figure or table is made of, and what is read from them.
struct DataSpec {
  std::string id;  ///< number of the figure or table in the paper
  std::string title;
  std::string x;                    ///< column of the x-axis, or that an average runs over
  std::vector<std::string> x_more;  ///< further ones: a place on the axis for each combination
  std::string at;  ///< column of where a place is drawn, if not where x says; empty: x
  std::string y;   ///< column of the numbers
  std::string series = "system";  ///< one line or group of bars per value of this column
  std::vector<Condition> where;
  std::optional<Condition> normalize;  ///< divide by the row that agrees in all but this column
  std::string baseline;                ///< series that ratios refer to; empty: the first one
  std::string paper;                   ///< of results/claims.csv; empty: no comparison
  SystemNames systems;
  Schema schema;         ///< of the folders that it is for
  std::size_t line = 0;  ///< where in experiment.toml, for error messages
  std::string place;     ///< the same with the file

  /// A value of the series' column, as people read it.
  std::string shown_series(std::string_view value) const;
  /// A place on the x-axis, and the axis itself with its unit, as people read them.
  std::string shown_x(std::string_view x_value) const;
  std::string shown_x_axis() const;
  /// The axis that the figure is drawn over, with its unit.
  std::string shown_position_axis() const;
  /// Whether the places on the x-axis are different things, of which an average says nothing.
  bool point_by_point() const { return x == "workload" || !x_more.empty() || !at.empty(); }
};

struct FigureSpec : DataSpec {
  enum class Data {
    points,    ///< x and y are columns of points.csv
    timeline,  ///< the course of one point, from timeline.csv
  };
  Data data = Data::points;
  std::string data_place;  ///< where it says so, with the file
  std::string plot;        ///< plots/<plot>.gp
  std::string plot_place;  ///< the same
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

/// Errors: no TOML, a key that is missing, unknown or of the wrong type, a column that points.csv
/// does not have by `schema`, an id used twice.
Expected<Specs> read_specs(const std::filesystem::path& experiment_toml, const Schema& schema = {});

/// Which places a script can draw on its x-axis.
enum class XAxis { any, numbers, positive_numbers };
/// Reads it from a line of the script, "# x-axis: numbers" or "# x-axis: numbers above 0"; `any` if
/// there is none.
/// Error: it cannot be read.
Expected<XAxis> x_axis_of(const std::filesystem::path& script);

/// Error: a figure whose script is not in the folder or cannot be read, or cannot draw the figure's
/// column on its x-axis.
Expected<void> check_plots(const Specs& specs, const std::filesystem::path& plots);

}  // namespace perdura::report
