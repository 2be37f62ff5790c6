#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/schema/error.h"

namespace perdura::report {

/// Input and output locations of the report, and callbacks.
struct ReportOptions {
  std::filesystem::path input;   ///< a result folder, or a folder of result folders
  std::filesystem::path plots;   ///< holds the gnuplot scripts
  std::filesystem::path claims;  ///< claims.csv
  std::filesystem::path notes;   ///< holds <paper>-notes.toml
  std::filesystem::path output;  ///< empty: input/report
  std::string gnuplot = "gnuplot";
  /// Called before each figure is drawn, with its title, the number of figures drawn, and the
  /// total. An exception that it throws ends the report.
  std::function<void(const std::string& title, std::size_t drawn, std::size_t all)> progress{};
  std::function<void()> while_drawing{};  ///< as in DrawingPlace (drawing.h)
};

struct ReportResult {
  std::filesystem::path page;                ///< index.html
  std::vector<std::filesystem::path> files;  ///< everything written, the page included
  std::size_t figures = 0;                   ///< number of figures drawn
  std::size_t tables = 0;
  std::vector<std::string> not_drawn;  ///< why figures have no image, though there is data; a line
      ///< each, which stands in the figure's place on the page, too
  std::size_t rows_not_drawn = 0;  ///< matched by a figure or table, but not valid
  std::vector<std::string> notes;  ///< remarks on the folders' files for the user, one line each
};

/// Reads the results; writes one CSV, gnuplot script, SVG and PNG per figure, one CSV per table,
/// and one self-contained HTML page. The same input yields the same bytes. Errors: one line with
/// file, line, problem and advice. A half-written page is never left as index.html. A figure that
/// cannot be drawn is not an error: all others, the tables and the page are still written.
schema::Expected<ReportResult> write_report(const ReportOptions& options);

}  // namespace perdura::report
