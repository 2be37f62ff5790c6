#include "harness/compare/matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "harness/report/columns.h"

namespace perdura::compare {
namespace {

using report::Expected;
using report::fail;
using report::Points;

constexpr std::string_view kThroughput = "throughput_ops_s";

/// What a sample of a simulated point depends on, beside the point.
using Draw = std::pair<std::string, std::string>;  // seed and repetition

struct Samples {
  std::vector<double> values;
  std::multiset<Draw> draws;
};

using Quantities = std::map<std::string, Samples>;

struct Run {
  std::vector<Point> order;
  std::map<Point, Quantities> points;
  std::map<Point, std::size_t> valid;      // number of rows
  std::map<Point, std::size_t> not_valid;  // the same of another verdict

  bool empty() const { return valid.empty() && not_valid.empty(); }
  bool has(const Point& point) const { return valid.contains(point) || not_valid.contains(point); }
};

std::size_t count_of(const std::map<Point, std::size_t>& counts, const Point& point) {
  const auto found = counts.find(point);
  return found == counts.end() ? 0 : found->second;
}

Point point_of(const Points& points, std::size_t row) {
  Point point;
  for (const std::string_view column : point_columns()) point.push_back(points.text(row, column));
  return point;
}

Run gather(const std::vector<Points>& folders, Side side,
           const std::vector<std::string>& quantities, std::vector<NotValid>& not_valid) {
  Run run;
  for (const Points& points : folders) {
    for (std::size_t row = 0; row < points.size(); ++row) {
      const Point point = point_of(points, row);
      if (!points.valid(row)) {
        not_valid.push_back({side, point, points.text(row, "repetition"),
                             points.text(row, "verdict"), points.text(row, "reason")});
        ++run.not_valid[point];
        continue;
      }
      ++run.valid[point];
      const auto [at, added] = run.points.try_emplace(point);
      if (added) run.order.push_back(point);
      for (const std::string& quantity : quantities) {
        const std::optional<double> value = points.number(row, quantity);
        if (!value) continue;
        Samples& samples = at->second[quantity];
        samples.values.push_back(*value);
        samples.draws.emplace(points.text(row, "seed"), points.text(row, "repetition"));
      }
    }
  }
  return run;
}

/// Every row counts, also those that are not compared: what is modelled is never set beside what
/// was measured.
Expected<bool> one_provenance(const std::vector<Points>& a, const std::vector<Points>& b) {
  const Points* first = nullptr;
  for (const auto* side : {&a, &b}) {
    for (const Points& points : *side) {
      for (std::size_t row = 0; row < points.size(); ++row) {
        if (first == nullptr) first = &points;
        const std::string& provenance = points.text(row, "provenance");
        const std::string& other = first->text(0, "provenance");
        if (provenance == other) continue;
        return fail(fmt::format("{} is {} and {} is {}; compare runs of the same platform",
                                first->file().string(), other, points.file().string(), provenance));
      }
    }
  }
  return first != nullptr && first->text(0, "provenance") == "modelled";
}

/// What was measured twice is never the same in every cell, so such rows are copies; and what was
/// simulated twice says nothing new.
Expected<void> without_copies(const std::vector<Points>& folders) {
  std::map<std::vector<std::string>, std::string> places;
  for (const Points& points : folders) {
    for (std::size_t row = 0; row < points.size(); ++row) {
      if (!points.valid(row)) continue;
      std::vector<std::string> cells;
      for (const report::Column& column : report::kPointColumns) {
        cells.push_back(points.text(row, column.name));
      }
      std::string place = fmt::format("{}:{}", points.file().string(), points.line(row));
      const auto [first, added] = places.try_emplace(std::move(cells), place);
      if (added) continue;
      return fail(
          fmt::format("{} and {} are the same row, of the same seed and repetition, which is no "
                      "further repetition; leave one of the two out",
                      first->second, place));
    }
  }
  return {};
}

void pair_up(const Run& a, const Run& b, const std::vector<std::string>& quantities,
             Matching& matching) {
  for (const Point& point : a.order) {
    const auto other = b.points.find(point);
    if (other == b.points.end()) continue;
    const auto& of_a = a.points.at(point);
    const auto& of_b = other->second;
    for (const std::string& quantity : quantities) {
      const bool in_a = of_a.contains(quantity);
      const bool in_b = of_b.contains(quantity);
      if (in_a && in_b) {
        const Samples& samples_a = of_a.at(quantity);
        const Samples& samples_b = of_b.at(quantity);
        matching.pairs.push_back({point, quantity, samples_a.values, samples_b.values,
                                  samples_a.draws == samples_b.draws});
      } else if (in_a || in_b) {
        matching.unmatched.push_back({in_a ? Side::a : Side::b, point, quantity});
      }
    }
  }
}

/// A point whose rows of the other run are all not valid is listed there.
void list_unmatched(const Run& run, const Run& other, Side side, Matching& matching) {
  for (const Point& point : run.order) {
    if (other.has(point)) continue;
    matching.unmatched.push_back({side, point, ""});
  }
}

/// The rows of all operations stand for those of the single kinds, which a point that failed early
/// does not have.
void list_lost(const Run& a, const Run& b, Matching& matching) {
  const auto operation = static_cast<std::size_t>(
      std::find(point_columns().begin(), point_columns().end(), "operation") -
      point_columns().begin());
  for (const Point& point : a.order) {
    if (point[operation] != "all") continue;
    const Lost lost{point, count_of(a.valid, point), count_of(a.not_valid, point),
                    count_of(b.valid, point), count_of(b.not_valid, point)};
    const bool more_often = lost.not_valid_b * (lost.valid_a + lost.not_valid_a) >
                            lost.not_valid_a * (lost.valid_b + lost.not_valid_b);
    if (lost.missing() || more_often) matching.lost.push_back(lost);
  }
}

/// Whether the two were meant to measure the same: some point of one is in the other, whatever
/// became of it, or the other has nothing at all.
bool have_common_point(const Run& a, const Run& b) {
  if (b.empty()) return true;
  return std::any_of(a.order.begin(), a.order.end(),
                     [&](const Point& point) { return b.has(point); });
}

}  // namespace

const std::vector<std::string_view>& point_columns() {
  static const std::vector<std::string_view> columns = [] {
    std::vector<std::string_view> names{"experiment"};
    const auto& keys = Points::key_columns();
    names.insert(names.end(), keys.begin(), keys.end());
    return names;
  }();
  return columns;
}

bool higher_is_better(std::string_view quantity) { return quantity == kThroughput; }

std::vector<std::string> comparable_quantities() {
  std::vector<std::string> names;
  for (const report::Column& column : report::kPointColumns) {
    const std::string_view name = column.name;
    const bool bound = name.ends_with("_low_us") || name.ends_with("_high_us");
    const bool time = name.starts_with("latency_") || name.starts_with("response_");
    if (name == kThroughput || name.ends_with("_per_op") || (time && !bound)) {
      names.emplace_back(name);
    }
  }
  return names;
}

std::vector<std::string> default_quantities() {
  return {std::string(kThroughput), "latency_mean_us", "latency_p50_us",  "latency_p99_us",
          "response_mean_us",       "response_p50_us", "response_p99_us", "server_cpu_us_per_op"};
}

Expected<Matching> match(const std::vector<Points>& a, const std::vector<Points>& b,
                         const std::vector<std::string>& quantities) {
  const std::vector<std::string> known = comparable_quantities();
  for (const std::string& quantity : quantities) {
    if (std::find(known.begin(), known.end(), quantity) == known.end()) {
      return fail(
          fmt::format("unknown quantity '{}'; known are: {}", quantity, fmt::join(known, ", ")));
    }
    if (std::count(quantities.begin(), quantities.end(), quantity) > 1) {
      return fail(fmt::format("quantity '{}' is given twice; give it once", quantity));
    }
  }
  const auto modelled = one_provenance(a, b);
  if (!modelled) return tl::unexpected(modelled.error());
  for (const auto* side : {&a, &b}) {
    if (auto sound = without_copies(*side); !sound) return tl::unexpected(sound.error());
  }
  Matching matching;
  matching.modelled = *modelled;
  const Run run_a = gather(a, Side::a, quantities, matching.not_valid);
  const Run run_b = gather(b, Side::b, quantities, matching.not_valid);
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
