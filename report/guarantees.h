#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/schema/csv_table.h"
#include "harness/schema/error.h"

namespace perdura::report {

/// A table of proven guarantees, as `perdura guarantees` writes it: words, not numbers.
struct GuaranteeTable {
  std::string name;
  std::string title;
  std::string caption;
  bool verdicts = false;  ///< its cells are verdicts: right, wasteful, lost, ...
  schema::CsvTable cells;
};

/// The tables in INPUT/guarantees, in the order of its tables.toml; none if there is no such file.
/// Errors: the file, or a table that it names, cannot be read.
schema::Expected<std::vector<GuaranteeTable>> read_guarantees(const std::filesystem::path& input);

/// Writes tables.toml and a CSV file for each table into a folder, which must exist.
schema::Expected<void> write_guarantees(const std::filesystem::path& folder,
                                        const std::vector<GuaranteeTable>& tables);

}  // namespace perdura::report
