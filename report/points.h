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

/// The columns of a points.csv by name.
class PointColumns {
 public:
  /// Error: a column that every points.csv has is missing.
  static schema::Expected<PointColumns> of(const std::filesystem::path& file,
                                           const std::vector<std::string>& header,
                                           schema::Schema schema);
  const schema::Schema& schema() const { return schema_; }
  void add(std::string name);
  bool has(std::string_view column) const { return index_.contains(column); }
  /// The cell's text; empty if there is no such column.
  const std::string& text(const schema::CsvRow& row, std::string_view column) const;
  /// Error: the row is not a valid row of a points.csv, as described for Points.
  schema::Expected<void> check(const std::filesystem::path& file, const schema::CsvRow& row) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  schema::Schema schema_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;
  std::size_t count_ = 0;
};

/// A row; valid only while it is being read.
class PointRow {
 public:
  PointRow(const PointColumns& columns, const schema::CsvRow& row) : columns_(columns), row_(row) {}

  std::size_t line() const { return row_.line; }
  bool has(std::string_view column) const { return columns_.has(column); }
  const std::string& text(std::string_view column) const { return columns_.text(row_, column); }
  std::optional<double> number(std::string_view column) const {
    return schema::parse_number(text(column));
  }
  bool valid() const { return text("verdict") == "valid"; }
  bool noisy() const;

 private:
  const PointColumns& columns_;
  const schema::CsvRow& row_;
};

/// Passes each row of a points.csv to `call` as it is read, checked as for Points; memory does not
/// depend on the number of rows. Errors: also those that `call` returns.
schema::Expected<void> for_each_point(
    const std::filesystem::path& file,
    const std::function<schema::Expected<void>(const PointRow&)>& call);

/// The rows of a points.csv (docs/results.md), checked when read: every column exists, numbers are
/// finite, and nonnegative where they must be, and the provenance matches the platform, so that a
/// modelled row cannot pass for a measured one.
class Points {
 public:
  static schema::Expected<Points> read(const std::filesystem::path& file);
  /// The rows of a probes.csv (docs/probe.md) in the same form: with the experiment `probe`, all
  /// valid, and with the additional columns of probes.csv.
  static schema::Expected<Points> read_probes(const std::filesystem::path& file);

  bool has(std::string_view column) const { return columns_.has(column); }
  bool are_probes() const { return has("probe"); }
  const std::filesystem::path& file() const { return table_.file; }
  std::size_t size() const { return table_.rows.size(); }
  std::size_t line(std::size_t row) const { return table_.rows[row].line; }

  /// The cell's text; empty for a column of probes.csv in a points.csv.
  const std::string& text(std::size_t row, std::string_view column) const {
    return at(row).text(column);
  }
  /// The cell's number; nullopt if the cell is empty ("not measured").
  std::optional<double> number(std::size_t row, std::string_view column) const {
    return at(row).number(column);
  }
  bool valid(std::size_t row) const { return at(row).valid(); }
  /// True if the host was busy with other work, or had too few cores, during the measurement.
  bool noisy(std::size_t row) const { return at(row).noisy(); }
  /// True if READ stood for FLUSH in a log's method, as in "Correct, Fast Remote Persistence": the
  /// row's guarantee is then that of the method with FLUSH (docs/results.md). Rows of other
  /// systems name a method only if `persistence` is `correct`; their guarantee is that of the
  /// method that ran.
  bool guarantees_with_flush(std::size_t row) const {
    return text(row, "method").ends_with(" (read)") && text(row, "persistence").empty() &&
           !text(row, "guarantee").empty();
  }

  const schema::Schema& schema() const { return columns_.schema(); }
  /// The columns that identify a row's point of the sweep, without repetition and seed.
  std::vector<std::string_view> key_columns() const;

 private:
  PointRow at(std::size_t row) const { return {columns_, table_.rows[row]}; }

  schema::CsvTable table_;
  PointColumns columns_;
};

}  // namespace perdura::report
