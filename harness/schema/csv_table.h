#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/schema/error.h"

namespace perdura::report {

struct CsvRow {
  std::size_t line = 0;  ///< line of the file on which the row starts, from 1
  std::vector<std::string> cells;
};

/// A CSV file with a header line; every row has as many cells as the header.
struct CsvTable {
  std::filesystem::path file;
  std::vector<std::string> header;
  std::vector<CsvRow> rows;

  std::optional<std::size_t> column(std::string_view name) const;
};

/// Gives each row as it is read, so that a file may be larger than memory; `header` gets the first
/// line's cells. A row is valid within the call that it is given to only. Errors: those of
/// read_csv, and what a call answers.
Expected<void> for_each_row(
    const std::filesystem::path& file, std::string_view advice,
    const std::function<Expected<void>(const std::vector<std::string>& cells)>& header,
    const std::function<Expected<void>(const CsvRow& row)>& row);

/// Errors: the file cannot be read, is empty, breaks the CSV syntax, or a row has too few or too
/// many cells (the usual mark of a file that was cut off). `advice` says what to do then.
Expected<CsvTable> read_csv(const std::filesystem::path& file,
                            std::string_view advice = "mend the file");

/// Fails with the name of the first of `columns` that the header lacks.
Expected<void> require_columns(const CsvTable& table, const std::vector<std::string_view>& columns);

/// The cell, quoted where CSV demands it.
std::string csv_cell(std::string_view text);

/// The whole text as a number; nothing if any of it is not part of one. Accepts "inf".
std::optional<double> parse_number(std::string_view text);

}  // namespace perdura::report
