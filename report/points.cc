#include "report/points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/schema/advice.h"
#include "harness/schema/columns.h"

namespace perdura::report {
namespace {

/// Counts and times are never negative, but the interval of a mean may reach below zero.
bool can_be(const schema::Column& column, std::optional<double> number) {
  return number && std::isfinite(*number) && (*number >= 0 || column.may_be_negative);
}

}  // namespace

std::vector<std::string_view> Points::key_columns() const {
  std::vector<std::string_view> names;
  for (const schema::Column& column : schema().columns()) {
    if (column.identifies() && column.name != "experiment") names.push_back(column.name);
  }
  return names;
}

schema::Expected<PointColumns> PointColumns::of(const std::filesystem::path& file,
                                                const std::vector<std::string>& header,
                                                schema::Schema schema) {
  schema::CsvTable table{file, header, {}};
  std::vector<std::string_view> needed;
  for (const schema::Column& column : schema.columns()) needed.push_back(column.name);
  if (auto complete = schema::require_columns(table, needed); !complete) {
    return tl::unexpected(complete.error());
  }
  PointColumns columns;
  columns.schema_ = std::move(schema);
  for (const std::string& name : header) columns.add(name);
  return columns;
}

void PointColumns::add(std::string name) { index_.emplace(std::move(name), count_++); }

const std::string& PointColumns::text(const schema::CsvRow& row, std::string_view column) const {
  static const std::string none;
  const auto found = index_.find(column);
  return found == index_.end() ? none : row.cells[found->second];
}

bool PointRow::noisy() const {
  const std::string& noise = text("noise");
  return !noise.empty() && noise != "quiet";
}

schema::Expected<void> for_each_point(
    const std::filesystem::path& file,
    const std::function<schema::Expected<void>(const PointRow&)>& call) {
  auto schema = schema::Schema::beside(file);
  if (!schema) return tl::unexpected(schema.error());
  PointColumns columns;
  return schema::for_each_row(
      file, schema::advice_on_damaged(file),
      [&](const std::vector<std::string>& header) -> schema::Expected<void> {
        auto known = PointColumns::of(file, header, *schema);
        if (!known) return tl::unexpected(known.error());
        columns = std::move(*known);
        return {};
      },
      [&](const schema::CsvRow& row) -> schema::Expected<void> {
        if (auto sound = columns.check(file, row); !sound) return sound;
        return call({columns, row});
      });
}

schema::Expected<Points> Points::read(const std::filesystem::path& file) {
  auto table = schema::read_csv(file, schema::advice_on_damaged(file));
  if (!table) return tl::unexpected(table.error());
  auto schema = schema::Schema::beside(file);
  if (!schema) return tl::unexpected(schema.error());
  auto columns = PointColumns::of(file, table->header, std::move(*schema));
  if (!columns) return tl::unexpected(columns.error());
  Points points;
  points.table_ = std::move(*table);
  points.columns_ = std::move(*columns);
  for (const schema::CsvRow& row : points.table_.rows) {
    if (auto sound = points.columns_.check(file, row); !sound) return tl::unexpected(sound.error());
  }
  return points;
}

schema::Expected<Points> Points::read_probes(const std::filesystem::path& file) {
  const auto table = schema::read_csv(file, schema::advice_on_damaged(file));
  if (!table) return tl::unexpected(table.error());
  std::vector<std::string_view> needed{"platform", "provenance", "profile", "operation",
                                       "queue_depth"};
  for (const auto known : {schema::probe_settings(), schema::probe_readings()}) {
    for (const schema::Column& column : known) needed.push_back(column.name);
  }
  if (auto complete = schema::require_columns(*table, needed); !complete) {
    return tl::unexpected(complete.error());
  }
  Points points;
  points.table_.file = file;
  std::vector<std::string>& header = points.table_.header;
  for (const auto columns :
       {schema::point_columns(), schema::probe_settings(), schema::probe_readings()}) {
    for (const schema::Column& column : columns) header.emplace_back(column.name);
  }
  for (const std::string& name : header) points.columns_.add(name);
  for (const schema::CsvRow& row : table->rows) {
    schema::CsvRow point{row.line, std::vector<std::string>(header.size())};
    const auto cell = [&](std::string_view name) -> std::string& {
      return point.cells[*points.table_.column(name)];
    };
    for (const std::string_view name : needed) cell(name) = row.cells[*table->column(name)];
    cell("experiment") = "probe";
    cell("verdict") = "valid";
    points.table_.rows.push_back(std::move(point));
    const std::size_t last = points.size() - 1;
    for (const schema::Column& column : schema::probe_readings()) {
      const std::string_view name = column.name;
      if (!can_be(column, points.number(last, name))) {
        return schema::fail(fmt::format("{}:{}: {} is '{}', not a number from 0; {}", file.string(),
                                        row.line, name, points.text(last, name),
                                        schema::advice_on_damaged(file)));
      }
    }
  }
  return points;
}

schema::Expected<void> PointColumns::check(const std::filesystem::path& file,
                                           const schema::CsvRow& row) const {
  const auto wrong = [&](const std::string& what) {
    return schema::fail(fmt::format("{}:{}: {}", file.string(), row.line, what));
  };
  const auto version = schema::parse_number(text(row, "schema_version"));
  if (!version || *version < schema::kOldestSchemaVersion || *version > schema::kSchemaVersion) {
    return wrong(fmt::format(
        "schema_version is '{}', this perdura reads {} to {}; use the version that "
        "wrote the file",
        text(row, "schema_version"), schema::kOldestSchemaVersion, schema::kSchemaVersion));
  }
  for (const auto columns : {schema_.columns(), schema::noise_columns()}) {
    for (const schema::Column& column : columns) {
      if (column.kind == schema::Column::Kind::text) continue;
      const std::string& cell = text(row, column.name);
      if (!cell.empty() && !can_be(column, schema::parse_number(cell))) {
        return wrong(fmt::format("{} is '{}', not a number{}; {}", column.name, cell,
                                 column.may_be_negative ? "" : " from 0",
                                 schema::advice_on_damaged(file)));
      }
    }
  }
  if (text(row, "repetition").empty()) {
    return wrong(fmt::format("repetition is empty; {}", schema::advice_on_damaged(file)));
  }
  const std::string& verdict = text(row, "verdict");
  if (verdict != "valid" && verdict != "invalid" && verdict != "failed") {
    return wrong(fmt::format("verdict is '{}'; it must be valid, invalid or failed", verdict));
  }
  const std::string& guarantee = text(row, "guarantee");
  std::vector<std::string_view> words;
  for (const schema::Spelling& word : schema::guarantee_words()) words.push_back(word.value);
  if (!guarantee.empty() && std::find(words.begin(), words.end(), guarantee) == words.end()) {
    return wrong(fmt::format("guarantee is '{}'; it must be {} or empty", guarantee,
                             fmt::join(words, ", ")));
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
