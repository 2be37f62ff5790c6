#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/schema/error.h"

namespace perdura::report {

/// Where the report finds what it needs and where it goes.
struct ReportOptions {
  std::filesystem::path input;   ///< a result folder, or a folder of result folders
  std::filesystem::path plots;   ///< holds the gnuplot scripts
  std::filesystem::path claims;  ///< claims.csv
  std::filesystem::path notes;   ///< holds <paper>-notes.toml
  std::filesystem::path output;  ///< empty: input/report
  std::string gnuplot = "gnuplot";
  /// Called before each figure is drawn: its title, how many are drawn, and of how many. What it
  /// throws ends the report.
  std::function<void(const std::string& title, std::size_t drawn, std::size_t all)> progress{};
  std::function<void()> while_drawing{};  ///< as in DrawingPlace (drawing.h)
};

struct ReportResult {
  std::filesystem::path page;                ///< index.html
  std::vector<std::filesystem::path> files;  ///< everything written, the page included
  std::size_t figures = 0;                   ///< drawn
  std::size_t tables = 0;
  std::vector<std::string> not_drawn;  ///< why figures have no image, though there is data; a line
      ///< each, which stands in the figure's place on the page, too
  std::size_t rows_not_drawn = 0;  ///< matched by a figure or table, and not valid
  std::vector<std::string> notes;  ///< what a user should know of the folders' files, a line each
};

/// Reads the results, writes one CSV, gnuplot script, SVG and PNG per figure, one CSV per table,
/// and one HTML page that needs nothing else. The same input gives the same bytes. Errors: one line
/// with file, line, what is wrong and what to do. Nothing half-written is left as index.html. A
/// figure that cannot be drawn is no error: all others, the tables and the page are written.
Expected<ReportResult> write_report(const ReportOptions& options);

}  // namespace perdura::report
