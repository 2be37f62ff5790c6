#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/schema/csv_table.h"
#include "harness/schema/error.h"
#include "harness/schema/schema.h"

namespace perdura::report {

/// The names of the cells of a row.
class PointColumns {
 public:
  /// Error: one that every points.csv has is missing.
  static Expected<PointColumns> of(const std::filesystem::path& file,
                                   const std::vector<std::string>& header, Schema schema);
  const Schema& schema() const { return schema_; }
  void add(std::string name);
  bool has(std::string_view column) const { return index_.contains(column); }
  /// The cell's text; empty where there is no such column.
  const std::string& text(const CsvRow& row, std::string_view column) const;
  /// Error: the row is none of a points.csv, as said at Points.
  Expected<void> check(const std::filesystem::path& file, const CsvRow& row) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  Schema schema_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;
  std::size_t count_ = 0;
};

/// A row that is valid only while it is being read.
class PointRow {
 public:
  PointRow(const PointColumns& columns, const CsvRow& row) : columns_(columns), row_(row) {}

  std::size_t line() const { return row_.line; }
  bool has(std::string_view column) const { return columns_.has(column); }
  const std::string& text(std::string_view column) const { return columns_.text(row_, column); }
  std::optional<double> number(std::string_view column) const { return parse_number(text(column)); }
  bool valid() const { return text("verdict") == "valid"; }
  bool noisy() const;

 private:
  const PointColumns& columns_;
  const CsvRow& row_;
};

/// Gives each row of a points.csv, checked as Points are, as it is read: in memory that does not
/// depend on how many there are. Errors: also what a call answers.
Expected<void> for_each_point(const std::filesystem::path& file,
                              const std::function<Expected<void>(const PointRow&)>& call);

/// The rows of a points.csv (docs/results.md), checked when read: every column is
/// there, numbers are finite and not negative where they cannot be, and the provenance fits the
/// platform, so that a modelled row cannot pass for a measured one.
class Points {
 public:
  static Expected<Points> read(const std::filesystem::path& file);
  /// The rows of a probes.csv (docs/probe.md) in the same form: of the experiment `probe`, each
  /// valid, with the columns of probes.csv besides.
  static Expected<Points> read_probes(const std::filesystem::path& file);

  bool has(std::string_view column) const { return columns_.has(column); }
  bool are_probes() const { return has("probe"); }
  const std::filesystem::path& file() const { return table_.file; }
  std::size_t size() const { return table_.rows.size(); }
  std::size_t line(std::size_t row) const { return table_.rows[row].line; }

  /// The cell's text; empty where a column of probes.csv is asked of a points.csv.
  const std::string& text(std::size_t row, std::string_view column) const {
    return at(row).text(column);
  }
  /// The cell's number; nothing when the cell is empty ("not measured").
  std::optional<double> number(std::size_t row, std::string_view column) const {
    return at(row).number(column);
  }
  bool valid(std::size_t row) const { return at(row).valid(); }
  /// Whether the host was busy with other things, or had too few cores, when it was measured.
  bool noisy(std::size_t row) const { return at(row).noisy(); }

  const Schema& schema() const { return columns_.schema(); }
  /// The columns that say which point of the sweep a row is, repetition and seed apart.
  std::vector<std::string_view> key_columns() const;

 private:
  PointRow at(std::size_t row) const { return {columns_, table_.rows[row]}; }

  CsvTable table_;
  PointColumns columns_;
};

}  // namespace perdura::report
