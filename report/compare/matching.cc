#include "report/compare/matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "harness/schema/columns.h"
#include "platform/base/suggestion.h"

namespace perdura::compare {
namespace {

using schema::Expected;
using schema::fail;

namespace fs = std::filesystem;

/// Numbers the draws, pairs of seed and repetition, that a simulated sample depends on in addition
/// to its point.
class Draws {
 public:
  std::uint32_t of(const report::PointRow& row) {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    return numbers_.try_emplace({row.text("seed"), row.text("repetition")}, next).first->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::uint32_t> numbers_;
};

/// The samples of one point in one run.
struct Samples {
  struct Sample {
    std::uint32_t quantity;
    std::uint32_t draw;
    double value;
  };
  std::size_t valid = 0;  // number of rows
  std::size_t not_valid = 0;
  std::size_t noisy = 0;  // number of valid rows that are noisy
  std::string noise;      // why the first noisy row is noisy
  std::vector<Sample> samples;

  bool has(std::size_t quantity) const {
    return std::any_of(samples.begin(), samples.end(),
                       [&](const Sample& sample) { return sample.quantity == quantity; });
  }
  std::vector<double> values(std::size_t quantity) const {
    std::vector<double> found;
    for (const Sample& sample : samples) {
      if (sample.quantity == quantity) found.push_back(sample.value);
    }
    return found;
  }
  std::vector<std::uint32_t> draws(std::size_t quantity) const {
    std::vector<std::uint32_t> found;
    for (const Sample& sample : samples) {
      if (sample.quantity == quantity) found.push_back(sample.draw);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
};

struct Run {
  std::map<Point, Samples> points;
  std::vector<Point> order;  // points with a valid row

  bool has(const Point& point) const { return points.contains(point); }
};

/// The location of a row: file and line.
struct RowLocation {
  const fs::path* file;
  std::size_t line;

  std::string words() const { return fmt::format("{}:{}", file->string(), line); }
};

/// Reads both runs, one row at a time, and keeps only the samples of a row.
class RunReader {
 public:
  RunReader(const std::vector<std::string>& quantities, const Reading& reading, Matching& matching)
      : quantities_(quantities), reading_(reading), matching_(matching) {}

  Expected<Run> read(const std::vector<fs::path>& files, Side side) {
    Run run;
    locations_.clear();
    for (const fs::path& file : files) {
      const auto read = report::for_each_point(file, [&](const report::PointRow& row) {
        if (reading_ && rows_++ % kRowsAStep == 0) reading_(file);
        return add(row, file, side, run);
      });
      if (!read) return tl::unexpected(read.error());
    }
    for (const Point& point : run.order) {
      const Samples& samples = run.points.at(point);
      if (samples.noisy == 0 || point[index_of("operation")] != "all") continue;
      matching_.noisy.push_back({side, point, samples.noisy, samples.valid, samples.noise});
    }
    return run;
  }

 private:
  std::size_t index_of(std::string_view column) const {
    return static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) -
                                    columns_.begin());
  }

  /// A run without a parameter's column is older than the parameter, and was run with its usual
  /// value.
  std::string value_of(const report::PointRow& row, std::string_view column) const {
    return row.has(column) ? row.text(column) : std::string(matching_.schema.find(column)->usual);
  }

  Expected<void> add(const report::PointRow& row, const fs::path& file, Side side, Run& run) {
    if (auto same = check_provenance(row, file); !same) return same;
    std::vector<std::string> values;
    values.reserve(columns_.size());
    for (const std::string_view column : columns_) values.push_back(value_of(row, column));
    const auto [at, added] = run.points.try_emplace(Point(std::move(values)));
    const Point& point = at->first;
    Samples& samples = at->second;
    if (!row.valid()) {
      matching_.not_valid.push_back(
          {side, point, row.text("repetition"), row.text("verdict"), row.text("reason")});
      ++samples.not_valid;
      return {};
    }
    if (samples.valid++ == 0) run.order.push_back(point);
    if (row.noisy() && samples.noisy++ == 0) samples.noise = row.text("noise");
    const std::uint32_t draw = draws_.of(row);
    if (auto once = check_once(row, {&file, row.line()}, point, draw); !once) return once;
    for (std::uint32_t i = 0; i < quantities_.size(); ++i) {
      const std::optional<double> value = row.number(quantities_[i]);
      if (value) samples.samples.push_back({i, draw, *value});
    }
    return {};
  }

  /// Checks every row, including those that are not compared: modelled values are never compared
  /// with measured ones.
  Expected<void> check_provenance(const report::PointRow& row, const fs::path& file) {
    const std::string& provenance = row.text("provenance");
    if (first_file_ == nullptr) {
      first_file_ = &file;
      first_provenance_ = provenance;
      matching_.modelled = provenance == "modelled";
    }
    if (provenance == first_provenance_) return {};
    return fail(fmt::format("{} is {} and {} is {}; compare runs of the same platform",
                            first_file_->string(), first_provenance_, file.string(), provenance));
  }

  /// Detects rows that occur twice. Two measurements never agree in every cell, so such rows are
  /// copies; a repeated simulation adds no information. Two different rows of one point, seed and
  /// repetition are assumed never to have the same hash.
  Expected<void> check_once(const report::PointRow& row, const RowLocation& location,
                            const Point& point, std::uint32_t draw) {
    std::size_t hash = 0;
    for (const schema::Column& column : matching_.schema.columns()) {
      hash = hash * 0x9e3779b97f4a7c15ULL + std::hash<std::string>()(row.text(column.name));
    }
    const auto [first, added] = locations_.try_emplace({point.id(), draw, hash}, location);
    if (added) return {};
    return fail(
        fmt::format("{} and {} are the same row, of the same seed and repetition, which is no "
                    "further repetition; leave one of the two out",
                    first->second.words(), location.words()));
  }

  // Progress is reported after this many rows, which take no noticeable time.
  static constexpr std::size_t kRowsAStep = 4096;

  const std::vector<std::string>& quantities_;
  const Reading& reading_;
  std::size_t rows_ = 0;
  Matching& matching_;
  std::vector<std::string_view> columns_ = point_columns(matching_.schema);
  Draws draws_;
  const fs::path* first_file_ = nullptr;
  std::string first_provenance_;
  // Rows seen in one run.
  std::map<std::tuple<const void*, std::uint32_t, std::size_t>, RowLocation> locations_;
};

void pair_up(const Run& a, const Run& b, const std::vector<std::string>& quantities,
             Matching& matching) {
  for (const Point& point : a.order) {
    const auto other = b.points.find(point);
    if (other == b.points.end() || other->second.valid == 0) continue;
    const Samples& of_a = a.points.at(point);
    const Samples& of_b = other->second;
    for (std::size_t i = 0; i < quantities.size(); ++i) {
      const bool in_a = of_a.has(i);
      const bool in_b = of_b.has(i);
      if (in_a && in_b) {
        matching.pairs.push_back(
            {point, quantities[i], of_a.values(i), of_b.values(i), of_a.draws(i) == of_b.draws(i)});
      } else if (in_a || in_b) {
        matching.unmatched.push_back({in_a ? Side::a : Side::b, point, quantities[i]});
      }
    }
  }
}

/// Points whose rows in the other run are all not valid are listed there.
void list_unmatched(const Run& run, const Run& other, Side side, Matching& matching) {
  for (const Point& point : run.order) {
    if (other.has(point)) continue;
    matching.unmatched.push_back({side, point, ""});
  }
}

/// Considers the rows of all operations only, since a point that failed early has no rows of single
/// kinds.
void list_lost(const Run& a, const Run& b, Matching& matching) {
  const auto columns = point_columns(matching.schema);
  const auto operation = static_cast<std::size_t>(
      std::find(columns.begin(), columns.end(), "operation") - columns.begin());
  for (const Point& point : a.order) {
    if (point[operation] != "all") continue;
    const Samples& of_a = a.points.at(point);
    const auto other = b.points.find(point);
    const Samples of_b = other == b.points.end() ? Samples{} : other->second;
    const Lost lost{point, of_a.valid, of_a.not_valid, of_b.valid, of_b.not_valid};
    const bool more_often = lost.not_valid_b * (lost.valid_a + lost.not_valid_a) >
                            lost.not_valid_a * (lost.valid_b + lost.not_valid_b);
    if (lost.missing() || more_often) matching.lost.push_back(lost);
  }
}

/// True if the two runs were meant to measure the same: some point of one is in the other, whatever
/// its verdict, or the other is empty.
bool have_common_point(const Run& a, const Run& b) {
  if (b.points.empty()) return true;
  return std::any_of(a.order.begin(), a.order.end(),
                     [&](const Point& point) { return b.has(point); });
}

}  // namespace

std::vector<std::string_view> point_columns(const schema::Schema& schema) {
  std::vector<std::string_view> names;
  for (const schema::Column& column : schema.columns()) {
    if (column.identifies()) names.push_back(column.name);
  }
  return names;
}

std::vector<std::string> comparable_quantities(const schema::Schema& schema) {
  std::vector<std::string> names;
  for (const schema::Column& column : schema.columns()) {
    if (column.better != schema::Column::Better::unknown) names.emplace_back(column.name);
  }
  return names;
}

std::vector<std::string> default_quantities() {
  return {"throughput_ops_s", "latency_mean_us", "latency_p50_us",  "latency_p99_us",
          "response_mean_us", "response_p50_us", "response_p99_us", "server_cpu_us_per_op"};
}

Expected<Matching> match(const std::vector<fs::path>& a, const std::vector<fs::path>& b,
                         const std::vector<std::string>& quantities, const Reading& reading) {
  Matching matching;
  std::vector<schema::Column> declared;
  std::vector<schema::Schema> schemas;  // own the strings of the columns
  for (const auto* files : {&a, &b}) {
    for (const fs::path& file : *files) {
      auto schema = schema::Schema::beside(file);
      if (!schema) return tl::unexpected(schema.error());
      const auto more = schema->declared();
      declared.insert(declared.end(), more.begin(), more.end());
      schemas.push_back(std::move(*schema));
    }
  }
  matching.schema = schema::Schema(declared);
  const std::vector<std::string> known = comparable_quantities(matching.schema);
  for (const std::string& quantity : quantities) {
    if (std::find(known.begin(), known.end(), quantity) == known.end()) {
      return fail(unknown_name("quantity", quantity, known));
    }
    if (std::count(quantities.begin(), quantities.end(), quantity) > 1) {
      return fail(fmt::format("quantity '{}' is given twice; give it once", quantity));
    }
  }
  RunReader reader(quantities, reading, matching);
  const auto read_a = reader.read(a, Side::a);
  if (!read_a) return tl::unexpected(read_a.error());
  const auto read_b = reader.read(b, Side::b);
  if (!read_b) return tl::unexpected(read_b.error());
  const Run& run_a = *read_a;
  const Run& run_b = *read_b;
  pair_up(run_a, run_b, quantities, matching);
  list_unmatched(run_a, run_b, Side::a, matching);
  list_unmatched(run_b, run_a, Side::b, matching);
  list_lost(run_a, run_b, matching);
  if (matching.pairs.empty() && (matching.lost.empty() || !have_common_point(run_a, run_b))) {
    return fail(
        fmt::format("no valid point with {} is in both runs ({} only in A, {} only in B, {} rows "
                    "not valid); compare runs of the same experiment",
                    fmt::join(quantities, ", "),
                    std::count_if(matching.unmatched.begin(), matching.unmatched.end(),
                                  [](const Unmatched& each) { return each.side == Side::a; }),
                    std::count_if(matching.unmatched.begin(), matching.unmatched.end(),
                                  [](const Unmatched& each) { return each.side == Side::b; }),
                    matching.not_valid.size()));
  }
  return matching;
}

}  // namespace perdura::compare
