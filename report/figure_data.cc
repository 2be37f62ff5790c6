#include "report/figure_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_map>

#include "harness/measure/statistics.h"
#include "harness/schema/columns.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

bool matches(const Points& points, std::size_t row, const schema::DataSpec& spec) {
  return std::all_of(spec.where.begin(), spec.where.end(), [&](const schema::Condition& condition) {
    return condition.holds(points.text(row, condition.column));
  });
}

/// For each point and repetition, the valid row that normalizes the others: it agrees with them in
/// everything except the series' column.
class NormalizingRows {
 public:
  NormalizingRows(const Points& points, const std::vector<std::size_t>& matching,
                  const schema::DataSpec& spec)
      : points_(points), spec_(spec) {
    if (!spec.normalize) return;
    std::erase_if(columns_,
                  [&](std::string_view column) { return !tells_points_apart(column, matching); });
    for (const std::size_t row : matching) {
      if (!points.valid(row) || !spec.normalize->holds(points.text(row, spec.series))) continue;
      rows_.emplace(key_of(row), row);
    }
  }

  std::optional<std::size_t> of(std::size_t row) const {
    const auto found = rows_.find(key_of(row));
    return found == rows_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  /// A column of which each series has a value of its own, as a variant has, says nothing of the point.
  bool tells_points_apart(std::string_view column, const std::vector<std::size_t>& rows) const {
    if (column == spec_.series) return false;
    const bool is_place = column == spec_.x || std::find(spec_.x_more.begin(), spec_.x_more.end(),
                                                         column) != spec_.x_more.end();
    if (is_place) return true;
    std::map<std::string, std::string> of_series;
    return std::any_of(rows.begin(), rows.end(), [&](std::size_t row) {
      const std::string& value = points_.text(row, column);
      return of_series.try_emplace(points_.text(row, spec_.series), value).first->second != value;
    });
  }
  std::string key_of(std::size_t row) const {
    std::string key = points_.text(row, "repetition");
    for (const std::string_view column : columns_) {
      key += '\0';
      key += points_.text(row, column);
    }
    return key;
  }

  const Points& points_;
  const schema::DataSpec& spec_;
  std::vector<std::string_view> columns_ = points_.key_columns();
  std::unordered_map<std::string, std::size_t> rows_;
};

/// 0 divided by 0 is 0: a series with cost 0 costs nothing in any unit.
double divide(double value, double by) {
  if (by != 0) return value / by;
  return value == 0 ? 0 : std::numeric_limits<double>::infinity();
}

/// Names the first key column in which two rows of the same (series, x, repetition) differ.
schema::Error ambiguous(const Points& points, const schema::DataSpec& spec, std::size_t first,
                        std::size_t second) {
  std::string difference = "nothing";
  for (const std::string_view key : points.key_columns()) {
    if (points.text(first, key) != points.text(second, key)) {
      difference = key;
      break;
    }
  }
  return {fmt::format(
      "{}:{}: same point of figure or table {} as line {}, differing in {}; "
      "{}",
      points.file().string(), points.line(second), spec.id, points.line(first), difference,
      difference == "nothing" ? "remove one of the two lines"
                              : "name one value of it in the figure's 'where'")};
}

/// The place of a row on the x-axis. It contains no commas, since gnuplot would cut the text off
/// there.
std::string place_of(const Points& points, std::size_t row, const schema::DataSpec& spec) {
  if (spec.x_more.empty()) return points.text(row, spec.x);
  std::string place = points.schema().shown(spec.x, points.text(row, spec.x));
  for (const std::string& column : spec.x_more) {
    place += " / " + points.schema().shown(column, points.text(row, column));
  }
  return place;
}

/// The different guarantees of a series' rows, the weakest first.
std::string guarantees_of(const Points& points, const std::vector<std::size_t>& rows,
                          const schema::DataSpec& spec, const std::string& series) {
  std::set<std::string> found;
  for (const std::size_t row : rows) {
    if (points.text(row, spec.series) == series) found.insert(points.text(row, "guarantee"));
  }
  std::string words;
  for (const auto& [word, shown] : schema::guarantee_words()) {
    if (found.contains(std::string(word)))
      words += fmt::format("{}{}", words.empty() ? "" : "/", word);
  }
  return words;
}

struct Samples {
  std::vector<double> values;
  double at_sum = 0;
  std::size_t noisy = 0;
  std::map<std::string, std::size_t> row_of_repetition;
};

void order_axis(std::vector<std::string>& xs) {
  const bool numbers = std::all_of(xs.begin(), xs.end(), [](const std::string& x) {
    return schema::parse_number(x).has_value();
  });
  if (!numbers) return;
  std::sort(xs.begin(), xs.end(), [](const std::string& left, const std::string& right) {
    return *schema::parse_number(left) < *schema::parse_number(right);
  });
}

}  // namespace

const DrawnPoint* FigureData::find(const std::string& series_name, const std::string& x) const {
  const auto found = points.find({series_name, x});
  return found == points.end() ? nullptr : &found->second;
}

bool FigureData::guarantees_differ() const {
  std::set<std::string> different;
  for (const Series& each : series) different.insert(each.guarantee);
  different.erase("");
  return different.size() > 1;
}

schema::Expected<FigureData> collect(const Points& points,
                                     const std::vector<std::size_t>& candidates,
                                     const schema::DataSpec& spec, const SeriesOrder& order) {
  std::vector<std::size_t> matching;
  for (const std::size_t row : candidates) {
    if (matches(points, row, spec)) matching.push_back(row);
  }

  FigureData data;
  const schema::Quantity quantity = points.schema().quantity(spec.y);
  data.unit = spec.normalize ? "ratio" : quantity.unit;
  const NormalizingRows normalizing(points, matching, spec);
  std::set<std::string> known_xs;
  std::map<std::pair<std::string, std::string>, Samples> samples;
  for (const std::size_t row : matching) {
    if (!points.valid(row)) {
      const std::string& reason = points.text(row, "reason");
      data.omitted.push_back({row, fmt::format("{}: {}", points.text(row, "verdict"),
                                               reason.empty() ? "no reason given" : reason)});
      continue;
    }
    auto value = points.number(row, spec.y);
    if (!value) {
      data.omitted.push_back({row, fmt::format("{} was not measured", spec.y)});
      continue;
    }
    const auto at = spec.at.empty() ? std::optional(0.0) : points.number(row, spec.at);
    if (!at) {
      data.omitted.push_back({row, fmt::format("{} was not measured", spec.at)});
      continue;
    }
    if (spec.normalize) {
      const auto base = normalizing.of(row);
      const auto by = base ? points.number(*base, spec.y) : std::nullopt;
      if (!by) {
        data.omitted.push_back(
            {row, fmt::format("no valid row of {} to normalize by", spec.normalize->any_of[0])});
        continue;
      }
      value = divide(*value, *by);
    } else {
      *value *= quantity.scale;
    }
    const std::string x = place_of(points, row, spec);
    Samples& here = samples[{points.text(row, spec.series), x}];
    const auto [known, added] = here.row_of_repetition.emplace(points.text(row, "repetition"), row);
    if (!added) return tl::unexpected(ambiguous(points, spec, known->second, row));
    here.values.push_back(*value);
    if (points.noisy(row)) ++here.noisy;
    here.at_sum += *at * points.schema().quantity(spec.at).scale;
    if (known_xs.insert(x).second) data.xs.push_back(x);
    data.rows.push_back(row);
  }
  order_axis(data.xs);

  for (const auto& [where, here] : samples) {
    const auto count = static_cast<double>(here.values.size());
    DrawnPoint& point = data.points[where];
    point.mean = std::accumulate(here.values.begin(), here.values.end(), 0.0) / count;
    point.half_width = std::isinf(point.mean) ? 0 : confidence_half_width(here.values);
    point.repetitions = here.values.size();
    point.noisy = here.noisy;
    point.at = here.at_sum / count;
  }
  for (std::size_t place = 0; place < order.size(); ++place) {
    const bool present = std::any_of(samples.begin(), samples.end(), [&](const auto& entry) {
      return entry.first.first == order[place];
    });
    if (present) {
      data.series.push_back(
          {order[place], place, 0, guarantees_of(points, data.rows, spec, order[place])});
    }
  }
  return data;
}

double confidence_half_width(const std::vector<double>& samples) {
  const auto interval = measure::mean_interval(samples);
  return interval ? (interval->high - interval->low) / 2 : 0;
}

Averages average_over_x(const FigureData& data) {
  Averages averages;
  averages.total = data.xs.size();
  for (const std::string& x : data.xs) {
    bool everywhere = true;
    for (const Series& series : data.series) {
      if (data.find(series.name, x) == nullptr) everywhere = false;
    }
    if (!everywhere) continue;
    ++averages.used;
    for (const Series& series : data.series) {
      averages.by_series[series.name] += data.find(series.name, x)->mean;
    }
  }
  for (auto& [name, sum] : averages.by_series) sum /= static_cast<double>(averages.used);
  return averages;
}

}  // namespace perdura::report
