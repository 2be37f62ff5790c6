#include "harness/run/estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/schema/csv_table.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

void add(PastRun::Cost& to, const PastRun::Cost& cost) {
  to.seconds += cost.seconds;
  to.operations += cost.operations;
}

// Repetitions of a point differ only in their seed.
std::string without_repetition(const std::string& label) {
  return label.substr(0, label.find(" repetition="));
}

schema::Schema schema_of(const fs::path& folder) {
  auto schema = schema::Schema::beside(folder / "points.csv");
  if (!schema) throw UsageError(schema.error().message);
  return std::move(*schema);
}

bool ends_by_time(const Experiment& experiment) {
  // All points are given the same parameters.
  const PointSettings point = expand(experiment).front();
  const auto table = point.table();
  return std::any_of(table.begin(), table.end(), [&](const Parameter& parameter) {
    return parameter.sets_time && point.given(parameter.name);
  });
}

// True if the times of a past experiment apply to `experiment`.
bool holds_for(const Experiment& past, const Experiment& experiment) {
  return past.text == experiment.text || !(ends_by_time(past) || ends_by_time(experiment));
}

bool is_of(const fs::path& folder, const std::string& experiment, const std::string& platform) {
  const auto json = Json::parse_or_null(read_if_there(folder / "manifest.json"));
  return json.is_object() && json.value("experiment", "") == experiment &&
         json.value("platform", "") == platform && json.value("points_done", 0) > 0;
}

}  // namespace

PastRun read_past_run(const fs::path& folder, const Experiment& experiment) {
  const auto wrong = [&](const std::string& what) {
    return UsageError(fmt::format("--like {}: {}; give a folder that 'perdura run' wrote",
                                  folder.string(), what));
  };
  const fs::path experiment_file = folder / "experiment.toml";
  if (const PathKind kind = kind_of(experiment_file); kind != PathKind::file) {
    throw wrong(kind == PathKind::nothing
                    ? "has no experiment.toml"
                    : fmt::format("experiment.toml {}", not_a_file(experiment_file)));
  }
  if (!holds_for(
          load_experiment(folder / "experiment.toml", {{experiment.declared}, schema_of(folder)}),
          experiment)) {
    throw UsageError(fmt::format(
        "--like {}: the number of operations does not tell the time of open loops, durations and "
        "steady states; give a run of the same experiment",
        folder.string()));
  }
  const auto table = schema::read_csv(folder / "times.csv");
  if (!table) throw wrong(table.error().message);
  const auto label = table->column("label");
  const auto operations = table->column("operations");
  const auto wall = table->column("wall_s");
  if (!label || !operations || !wall) throw wrong("times.csv lacks a column");
  PastRun past;
  past.folder = folder;
  for (const schema::CsvRow& row : table->rows) {
    const auto count = schema::parse_number(row.cells[*operations]);
    const auto seconds = schema::parse_number(row.cells[*wall]);
    if (!count || !seconds || *count <= 0 || *seconds < 0) {
      throw wrong(fmt::format("times.csv:{} is not a time", row.line));
    }
    add(past.by_label[without_repetition(row.cells[*label])], {*seconds, *count});
    add(past.all, {*seconds, *count});
  }
  if (past.by_label.empty()) throw wrong("no point of it was finished");
  return past;
}

std::optional<PastRun> find_past_run(const fs::path& out, const Experiment& experiment,
                                     const std::string& platform) {
  if (const PathKind kind = kind_of(out); kind == PathKind::file || kind == PathKind::other) {
    throw UsageError(fmt::format(
        "{}: {}; past runs are looked for there: move it away, or name a run with --like DIR",
        out.string(), not_a_folder(out)));
  }
  std::optional<PastRun> newest;
  fs::file_time_type written;
  for (const fs::path& path : names_in(out)) {
    try {
      if (!is_of(path, experiment.name, platform)) continue;
      PastRun past = read_past_run(path, experiment);
      const auto time = fs::last_write_time(path / "times.csv");
      if (newest && time <= written) continue;
      newest = std::move(past);
      written = time;
    } catch (const UsageError&) {
      // An unreadable folder, such as one of another version, must not hide the others.
    } catch (const PlatformError&) {
      // Neither must one of another user.
    }
  }
  return newest;
}

Estimate estimate(std::span<const Point> points, const PastRun& past) {
  Estimate result;
  for (const Point& point : points) {
    const auto known = past.by_label.find(without_repetition(point.label));
    if (known != past.by_label.end()) ++result.of_same_point;
    const PastRun::Cost& cost = known == past.by_label.end() ? past.all : known->second;
    const auto operations = static_cast<double>(point.operations);
    result.seconds.push_back(cost.seconds / cost.operations * operations);
    result.total += result.seconds.back();
  }
  return result;
}

}  // namespace perdura::harness
