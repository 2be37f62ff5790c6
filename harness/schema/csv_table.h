#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/schema/error.h"

namespace perdura::schema {

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

/// Passes each row to `row` as it is read, so that a file may be larger than memory; `header` gets
/// the first line's cells. The row passed to a call is valid only during that call. Errors: those
/// of read_csv, and those that the callbacks return.
Expected<void> for_each_row(
    const std::filesystem::path& file, std::string_view advice,
    const std::function<Expected<void>(const std::vector<std::string>& cells)>& header,
    const std::function<Expected<void>(const CsvRow& row)>& row);

/// Errors: the file cannot be read, is empty, breaks the CSV syntax, or a row has too few or too
/// many cells (the usual sign of a truncated file). `advice` says what to do then.
Expected<CsvTable> read_csv(const std::filesystem::path& file,
                            std::string_view advice = "mend the file");

/// Fails with the name of the first of `columns` that the header lacks.
Expected<void> require_columns(const CsvTable& table, const std::vector<std::string_view>& columns);

/// The cell's text, quoted if CSV requires it.
std::string csv_cell(std::string_view text);

/// The whole text as a number; nullopt if any part of it is not. Accepts "inf".
std::optional<double> parse_number(std::string_view text);

}  // namespace perdura::schema
