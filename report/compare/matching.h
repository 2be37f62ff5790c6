// Matches the rows of two runs that belong to the same point.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/schema/error.h"
#include "harness/schema/schema.h"
#include "report/compare/configurations.h"
#include "report/points.h"

namespace perdura::compare {

/// The columns that identify a row's point: all identifying columns except seed and repetition.
std::vector<std::string_view> point_columns(const schema::Schema& schema = {});

/// The values of point_columns(), in order. Copies share them: a point is named once for each
/// quantity and list that contains it.
class Point {
 public:
  Point() : Point(std::vector<std::string>()) {}
  Point(std::vector<std::string> values)
      : values_(std::make_shared<const std::vector<std::string>>(std::move(values))) {}

  std::size_t size() const { return values_->size(); }
  const std::string& operator[](std::size_t i) const { return (*values_)[i]; }
  auto begin() const { return values_->begin(); }
  auto end() const { return values_->end(); }
  /// An identity that all copies share.
  const void* id() const { return values_.get(); }

  bool operator==(const Point& other) const { return *values_ == *other.values_; }
  bool operator<(const Point& other) const { return *values_ < *other.values_; }

 private:
  std::shared_ptr<const std::vector<std::string>> values_;
};

enum class Side { a, b };

/// The samples of a quantity at one point in both runs: one per repetition, in the column's unit.
struct Pair {
  Point point;
  std::string quantity;
  std::vector<double> a;
  std::vector<double> b;
  bool same_draws = true;  ///< both have the same seeds and repetitions
};

/// A point, or a quantity of one, that only one of the runs has.
struct Unmatched {
  Side side = Side::a;
  Point point;
  std::string quantity;  ///< the quantity that only this run has; empty: the whole point
};

/// A row that is not compared because its verdict is not `valid`.
struct NotValid {
  Side side = Side::a;
  Point point;
  std::string repetition;
  std::string verdict;
  std::string reason;
};

/// A point with repetitions that were measured while the host was not quiet.
struct Noisy {
  Side side = Side::a;
  Point point;  ///< the row of all its operations
  std::size_t noisy = 0;
  std::size_t valid = 0;
  std::string noise;  ///< kind of noise of the first of them: "crowded"
};

/// A point that is valid in run a, but in run b is missing or invalid in a larger fraction of its
/// repetitions. Its quantities cannot be compared, and yet b counts as worse.
struct Lost {
  Point point;  ///< the row of all its operations
  std::size_t valid_a = 0;
  std::size_t not_valid_a = 0;
  std::size_t valid_b = 0;
  std::size_t not_valid_b = 0;

  bool missing() const { return valid_b + not_valid_b == 0; }
};

struct Matching {
  schema::Schema schema{};  ///< of both runs
  bool modelled = false;
  std::vector<Pair> pairs;  ///< in the order of run a
  std::vector<Unmatched> unmatched;
  std::vector<NotValid> not_valid;
  std::vector<Noisy> noisy;          ///< points that are compared nevertheless
  std::vector<Lost> lost;            ///< in the order of run a
  std::vector<Differing> differing;  ///< left empty by match()
};

/// The columns that can be compared: those for which the better direction is known.
std::vector<std::string> comparable_quantities(const schema::Schema& schema = {});

/// The comparable columns that are compared by default. Only points of an open loop have response
/// times.
std::vector<std::string> default_quantities();

/// Called repeatedly while a file is being read. An exception that it throws ends the reading.
using Reading = std::function<void(const std::filesystem::path& file)>;

/// Matches the rows of two runs. A run is one points.csv or several, each read once, row by row.
/// Rows in several folders of a run that agree in everything but seed and repetition are
/// repetitions of the same point. Errors: a damaged file; a quantity that cannot be compared, or is
/// given twice; a row that occurs twice, such as in the copy of a folder, and would count as a
/// repetition; modelled rows beside measured ones; no point in common, unless points were lost.
schema::Expected<Matching> match(const std::vector<std::filesystem::path>& a,
                                 const std::vector<std::filesystem::path>& b,
                                 const std::vector<std::string>& quantities,
                                 const Reading& reading = {});

}  // namespace perdura::compare
