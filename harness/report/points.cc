#include "harness/report/points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/report/advice.h"
#include "harness/report/columns.h"
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

Expected<Points> Points::read(const std::filesystem::path& file) {
  auto table = read_csv(file, advice_on_damaged(file));
  if (!table) return tl::unexpected(table.error());
  for (const Column::Kind kind : {Column::Kind::text, Column::Kind::number}) {
    if (auto complete = require_columns(*table, columns_of_kind(kind)); !complete) {
      return tl::unexpected(complete.error());
    }
  }
  Points points;
  points.table_ = std::move(*table);
  for (std::size_t i = 0; i < points.table_.header.size(); ++i) {
    points.index_.emplace(points.table_.header[i], i);
  }
  for (std::size_t row = 0; row < points.size(); ++row) {
    if (auto sound = points.check(row); !sound) return tl::unexpected(sound.error());
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
  for (std::size_t i = 0; i < header.size(); ++i) points.index_.emplace(header[i], i);
  for (const CsvRow& row : table->rows) {
    CsvRow point{row.line, std::vector<std::string>(header.size())};
    for (const std::string_view name : needed) {
      point.cells[points.index_.find(name)->second] = row.cells[*table->column(name)];
    }
    point.cells[points.index_.find("experiment")->second] = "probe";
    point.cells[points.index_.find("verdict")->second] = "valid";
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

bool Points::noisy(std::size_t row) const {
  const std::string& noise = text(row, kNoiseColumns.front().name);
  return !noise.empty() && noise != "quiet";
}

Expected<void> Points::check(std::size_t row) const {
  const auto wrong = [&](const std::string& what) {
    return fail(fmt::format("{}:{}: {}", file().string(), line(row), what));
  };
  if (text(row, "schema_version") != fmt::to_string(kSchemaVersion)) {
    return wrong(
        fmt::format("schema_version is '{}', this perdura reads {}; use the version that "
                    "wrote the file",
                    text(row, "schema_version"), kSchemaVersion));
  }
  for (const std::string_view column : columns_of_kind(Column::Kind::number)) {
    if (!text(row, column).empty() && !can_be(column, number(row, column))) {
      return wrong(fmt::format("{} is '{}', not a number{}; {}", column, text(row, column),
                               may_be_negative(column) ? "" : " from 0",
                               advice_on_damaged(file())));
    }
  }
  for (const std::string_view column : {"repetition", "key_size", "value_size"}) {
    if (text(row, column).empty()) {
      return wrong(fmt::format("{} is empty; {}", column, advice_on_damaged(file())));
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
                               advice_on_damaged(file())));
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

const std::string& Points::text(std::size_t row, std::string_view column) const {
  static const std::string none;
  const auto found = index_.find(column);
  return found == index_.end() ? none : table_.rows[row].cells[found->second];
}

std::optional<double> Points::number(std::size_t row, std::string_view column) const {
  return parse_number(text(row, column));
}

}  // namespace perdura::report
