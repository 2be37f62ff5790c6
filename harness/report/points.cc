#include "harness/report/points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/schema/advice.h"
#include "harness/schema/columns.h"
#include "systems/guarantee.h"

namespace perdura::report {
namespace {

std::vector<std::string_view> columns_of_kind(Column::Kind kind) {
  std::vector<std::string_view> names;
  for (const Column& column : kPointColumns) {
    if (column.kind == kind) names.push_back(column.name);
  }
  return names;
}

/// Nothing that is counted or timed is negative, but the interval of a mean may reach below zero.
bool may_be_negative(std::string_view column) { return column.ends_with("_mean_low_us"); }

bool can_be(std::string_view column, std::optional<double> number) {
  return number && std::isfinite(*number) && (*number >= 0 || may_be_negative(column));
}

}  // namespace

const std::vector<std::string_view>& Points::key_columns() {
  static const std::vector<std::string_view> columns{
      "platform",        "profile",   "system",       "workload",    "key_size",
      "value_size",      "records",   "clients",      "queue_depth", "server_threads",
      "resizes",         "load",      "offered_load", "domain",      "ddio",
      "receive_buffers", "transport", "update",       "persistence", "operation"};
  return columns;
}

Expected<PointColumns> PointColumns::of(const std::filesystem::path& file,
                                        const std::vector<std::string>& header) {
  CsvTable table{file, header, {}};
  for (const Column::Kind kind : {Column::Kind::text, Column::Kind::number}) {
    if (auto complete = require_columns(table, columns_of_kind(kind)); !complete) {
      return tl::unexpected(complete.error());
    }
  }
  PointColumns columns;
  for (const std::string& name : header) columns.add(name);
  return columns;
}

void PointColumns::add(std::string name) { index_.emplace(std::move(name), count_++); }

const std::string& PointColumns::text(const CsvRow& row, std::string_view column) const {
  static const std::string none;
  const auto found = index_.find(column);
  return found == index_.end() ? none : row.cells[found->second];
}

bool PointRow::noisy() const {
  const std::string& noise = text(kNoiseColumns.front().name);
  return !noise.empty() && noise != "quiet";
}

Expected<void> for_each_point(const std::filesystem::path& file,
                              const std::function<Expected<void>(const PointRow&)>& call) {
  PointColumns columns;
  return for_each_row(
      file, advice_on_damaged(file),
      [&](const std::vector<std::string>& header) -> Expected<void> {
        auto known = PointColumns::of(file, header);
        if (!known) return tl::unexpected(known.error());
        columns = std::move(*known);
        return {};
      },
      [&](const CsvRow& row) -> Expected<void> {
        if (auto sound = columns.check(file, row); !sound) return sound;
        return call({columns, row});
      });
}

Expected<Points> Points::read(const std::filesystem::path& file) {
  auto table = read_csv(file, advice_on_damaged(file));
  if (!table) return tl::unexpected(table.error());
  auto columns = PointColumns::of(file, table->header);
  if (!columns) return tl::unexpected(columns.error());
  Points points;
  points.table_ = std::move(*table);
  points.columns_ = std::move(*columns);
  for (const CsvRow& row : points.table_.rows) {
    if (auto sound = points.columns_.check(file, row); !sound) return tl::unexpected(sound.error());
  }
  return points;
}

Expected<Points> Points::read_probes(const std::filesystem::path& file) {
  const auto table = read_csv(file, advice_on_damaged(file));
  if (!table) return tl::unexpected(table.error());
  std::vector<std::string_view> needed{"platform", "provenance", "profile", "operation"};
  needed.insert(needed.end(), kProbeSettings.begin(), kProbeSettings.end());
  needed.insert(needed.end(), kProbeReadings.begin(), kProbeReadings.end());
  if (auto complete = require_columns(*table, needed); !complete) {
    return tl::unexpected(complete.error());
  }
  Points points;
  points.table_.file = file;
  std::vector<std::string>& header = points.table_.header;
  for (const Column& column : kPointColumns) header.emplace_back(column.name);
  header.insert(header.end(), kProbeSettings.begin(), kProbeSettings.end());
  header.insert(header.end(), kProbeReadings.begin(), kProbeReadings.end());
  for (const std::string& name : header) points.columns_.add(name);
  for (const CsvRow& row : table->rows) {
    CsvRow point{row.line, std::vector<std::string>(header.size())};
    const auto cell = [&](std::string_view name) -> std::string& {
      return point.cells[*points.table_.column(name)];
    };
    for (const std::string_view name : needed) cell(name) = row.cells[*table->column(name)];
    cell("experiment") = "probe";
    cell("verdict") = "valid";
    points.table_.rows.push_back(std::move(point));
    const std::size_t last = points.size() - 1;
    for (const std::string_view name : kProbeReadings) {
      if (!can_be(name, points.number(last, name))) {
        return fail(fmt::format("{}:{}: {} is '{}', not a number from 0; {}", file.string(),
                                row.line, name, points.text(last, name), advice_on_damaged(file)));
      }
    }
  }
  return points;
}

Expected<void> PointColumns::check(const std::filesystem::path& file, const CsvRow& row) const {
  static const auto numbers = columns_of_kind(Column::Kind::number);
  const auto wrong = [&](const std::string& what) {
    return fail(fmt::format("{}:{}: {}", file.string(), row.line, what));
  };
  if (text(row, "schema_version") != fmt::to_string(kSchemaVersion)) {
    return wrong(
        fmt::format("schema_version is '{}', this perdura reads {}; use the version that "
                    "wrote the file",
                    text(row, "schema_version"), kSchemaVersion));
  }
  for (const std::string_view column : numbers) {
    const std::string& cell = text(row, column);
    if (!cell.empty() && !can_be(column, parse_number(cell))) {
      return wrong(fmt::format("{} is '{}', not a number{}; {}", column, cell,
                               may_be_negative(column) ? "" : " from 0", advice_on_damaged(file)));
    }
  }
  for (const std::string_view column : {"repetition", "key_size", "value_size"}) {
    if (text(row, column).empty()) {
      return wrong(fmt::format("{} is empty; {}", column, advice_on_damaged(file)));
    }
  }
  const std::string& verdict = text(row, "verdict");
  if (verdict != "valid" && verdict != "invalid" && verdict != "failed") {
    return wrong(fmt::format("verdict is '{}'; it must be valid, invalid or failed", verdict));
  }
  for (const Column& column : kNoiseColumns) {
    const std::string& cell = text(row, column.name);
    if (column.kind == Column::Kind::text || cell.empty()) continue;
    if (!can_be(column.name, parse_number(cell))) {
      return wrong(fmt::format("{} is '{}', not a number from 0; {}", column.name, cell,
                               advice_on_damaged(file)));
    }
  }
  const std::string& guarantee = text(row, "guarantee");
  if (!guarantee.empty() && !systems::guarantee_of_word(guarantee)) {
    return wrong(fmt::format("guarantee is '{}'; it must be {} or empty", guarantee,
                             fmt::join(systems::kGuaranteeWords, ", ")));
  }
  const std::string& provenance = text(row, "provenance");
  if (provenance != "modelled" && provenance != "measured") {
    return wrong(fmt::format("provenance is '{}'; it must be modelled or measured", provenance));
  }
  if ((text(row, "platform") == "sim") != (provenance == "modelled")) {
    return wrong(
        fmt::format("platform '{}' with provenance '{}'; only sim is modelled, mend the "
                    "line or run the point again",
                    text(row, "platform"), provenance));
  }
  return {};
}

}  // namespace perdura::report
