#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/csv_table.h"
#include "harness/report/error.h"

namespace perdura::report {

/// The rows of a points.csv (docs/results.md), checked when read: every column is
/// there, numbers are finite and not negative where they cannot be, and the provenance fits the
/// platform, so that a modelled row cannot pass for a measured one.
class Points {
 public:
  static Expected<Points> read(const std::filesystem::path& file);
  /// The rows of a probes.csv (docs/probe.md) in the same form: of the experiment `probe`, each
  /// valid, with the columns of probes.csv besides.
  static Expected<Points> read_probes(const std::filesystem::path& file);

  bool are_probes() const { return index_.contains("probe"); }
  const std::filesystem::path& file() const { return table_.file; }
  std::size_t size() const { return table_.rows.size(); }
  std::size_t line(std::size_t row) const { return table_.rows[row].line; }

  /// The cell's text; empty where a column of probes.csv is asked of a points.csv.
  const std::string& text(std::size_t row, std::string_view column) const;
  /// The cell's number; nothing when the cell is empty ("not measured").
  std::optional<double> number(std::size_t row, std::string_view column) const;
  bool valid(std::size_t row) const { return text(row, "verdict") == "valid"; }
  /// Whether the host was busy with other things, or had too few cores, when it was measured.
  bool noisy(std::size_t row) const;

  /// The columns that say which point of the sweep a row is, repetition and seed apart.
  static const std::vector<std::string_view>& key_columns();

 private:
  Expected<void> check(std::size_t row) const;

  CsvTable table_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace perdura::report
