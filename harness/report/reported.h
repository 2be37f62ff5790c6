#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/claims.h"
#include "harness/report/error.h"

namespace perdura::report {

/// One number or formula as a paper states it.
struct ReportedValue {
  std::string section;
  std::string figure;  ///< "14", "22-25", "Table 1"
  std::string quantity;
  std::string workload;
  std::string system;
  std::string value;  ///< as printed
  std::string unit;
  std::string kind;  ///< absolute, ratio or formula
  std::string note;
  double number = 0;  ///< of value; unused for a formula
  std::size_t line = 0;
};

/// Why our numbers differ from the paper's, in the words of results/reported/<paper>-notes.toml.
struct Note {
  std::vector<std::string> figures;  ///< ids; empty: about the whole comparison
  std::string text;                  ///< paragraphs, parted by blank lines
};

/// All that a paper's text and tables state, and the notes on it.
struct ReportedPaper {
  std::filesystem::path file;
  std::vector<ReportedValue> values;
  std::vector<Note> notes;
  std::vector<Claim> claims;
  std::filesystem::path claims_file;

  /// The value for a figure id; a reported range "22-25" holds for each figure in it. A workload
  /// or system that the paper leaves empty matches nothing.
  const ReportedValue* find(std::string_view figure, std::string_view kind,
                            std::string_view workload, std::string_view system) const;
};

/// Reads <folder>/<paper>.csv and, if they are there, <paper>-notes.toml and <paper>-claims.toml.
Expected<ReportedPaper> read_reported(const std::filesystem::path& folder,
                                      const std::string& paper);

}  // namespace perdura::report
