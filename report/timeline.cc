#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/schema/advice.h"
#include "harness/schema/columns.h"

namespace perdura::report {
namespace {

/// A key that is equal for a row of points.csv and a row of timeline.csv if they belong together:
/// both files were written by one program, from the same numbers.
template <class CellOf>
std::string identity(const schema::Schema& schema, CellOf cell_of) {
  std::string key;
  for (const schema::Column& column : schema.identity()) {
    key += cell_of(column.name);
    key += '\n';
  }
  return key;
}

/// Averages are weighted by operations, since an interval in which the system stalled has few of
/// them.
struct Course {
  double operations = 0;
  double sum = 0;
  std::optional<double> max;

  void add(const TimelineRow& row) {
    if (!row.latency_mean_us || !row.latency_max_us) return;
    operations += row.operations;
    sum += row.operations * *row.latency_mean_us;
    max = std::max(max.value_or(0), *row.latency_max_us);
  }
  std::optional<double> mean() const {
    return operations > 0 ? std::optional(sum / operations) : std::nullopt;
  }
};

}  // namespace

schema::Expected<Timelines> Timelines::read(const std::filesystem::path& file) {
  const auto table = schema::read_csv(file, schema::advice_on_damaged(file));
  if (!table) return tl::unexpected(table.error());
  const auto schema = schema::Schema::beside(file);
  if (!schema) return tl::unexpected(schema.error());
  std::vector<std::string_view> columns;
  const std::vector<schema::Column> identifying = schema->identity();
  for (const auto known :
       {std::span<const schema::Column>(identifying), schema::timeline_columns()}) {
    for (const schema::Column& column : known) columns.push_back(column.name);
  }
  if (auto complete = schema::require_columns(*table, columns); !complete) {
    return tl::unexpected(complete.error());
  }
  Timelines timelines;
  for (const schema::CsvRow& row : table->rows) {
    const auto cell = [&](std::string_view name) -> const std::string& {
      return row.cells[*table->column(name)];
    };
    for (const schema::Column& column : schema::timeline_columns()) {
      const bool needed = column.name == "time_ms" || column.name == "operations";
      if (schema::parse_number(cell(column.name)) || (cell(column.name).empty() && !needed))
        continue;
      return schema::fail(fmt::format("{}:{}: {} is '{}', not a number; {}", file.string(),
                                      row.line, column.name, cell(column.name),
                                      schema::advice_on_damaged(file)));
    }
    const auto number = [&](std::string_view name) { return schema::parse_number(cell(name)); };
    timelines.identities_.push_back(identity(*schema, cell));
    timelines.rows_.push_back({*number("time_ms"), *number("operations"), number("latency_mean_us"),
                               number("latency_max_us"), number("free_percent"),
                               number("cleanings"), number("cleanings_now")});
  }
  return timelines;
}

std::vector<TimelineRow> Timelines::of(const Points& points, std::size_t row) const {
  const std::string wanted =
      identity(points.schema(),
               [&](std::string_view name) -> const std::string& { return points.text(row, name); });
  std::vector<TimelineRow> found;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (identities_[i] == wanted) found.push_back(rows_[i]);
  }
  return found;
}

schema::Expected<FigureData> choose_point(const Points& points,
                                          const std::vector<std::size_t>& candidates,
                                          const schema::FigureSpec& spec,
                                          const SeriesOrder& order) {
  // Rows are selected and told apart as for a figure with one number per point.
  schema::FigureSpec each = spec;
  each.x = "repetition";
  each.y = "operations";
  each.where.push_back({"operation", {"all"}});
  auto data = collect(points, candidates, each, order);
  if (!data) return tl::unexpected(data.error());
  if (data->series.size() > 1) {
    return schema::fail(fmt::format(
        "{}: figure {} (line {} of the experiment) shows one point over time, "
        "and its 'where' leaves the systems {} and {}; name one",
        points.file().string(), spec.id, spec.line, data->series[0].name, data->series[1].name));
  }
  FigureData chosen;
  chosen.series = data->series;
  chosen.omitted = data->omitted;
  std::sort(data->rows.begin(), data->rows.end(), [&](std::size_t left, std::size_t right) {
    return *points.number(left, "repetition") < *points.number(right, "repetition");
  });
  for (const std::size_t row : data->rows) {
    if (chosen.rows.empty()) {
      chosen.rows.push_back(row);
    } else {
      chosen.omitted.push_back({row, "a figure over time shows the first repetition"});
    }
  }
  return chosen;
}

std::optional<TimelineSummary> summarize(const std::vector<TimelineRow>& rows) {
  TimelineSummary summary;
  Course cleaning;
  Course otherwise;
  std::size_t cleaning_intervals = 0;
  for (const TimelineRow& row : rows) {
    if (!row.cleanings || !row.cleanings_now) return std::nullopt;
    summary.cleanings = *row.cleanings;
    const bool now = *row.cleanings_now > 0;
    (now ? cleaning : otherwise).add(row);
    cleaning_intervals += now ? 1 : 0;
  }
  if (cleaning_intervals == 0) return std::nullopt;
  summary.cleaning_percent =
      100.0 * static_cast<double>(cleaning_intervals) / static_cast<double>(rows.size());
  summary.mean_cleaning_us = cleaning.mean();
  summary.mean_otherwise_us = otherwise.mean();
  summary.max_cleaning_us = cleaning.max;
  summary.max_otherwise_us = otherwise.max;
  return summary;
}

}  // namespace perdura::report
