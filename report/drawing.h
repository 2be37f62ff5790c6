// Turns data into a figure, in the same way for all figures: a CSV, a gnuplot script that draws it,
// an SVG and a PNG.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/schema/error.h"

namespace perdura::report {

/// A row of the CSV of a figure over an axis (docs/figures.md).
struct DrawnRow {
  std::string series;  ///< and the label that the legend has for it
  std::string label;
  std::size_t series_index = 0;
  std::size_t style = 0;
  std::string x;  ///< a number if the axis has numbers
  std::string x_label;
  std::size_t x_index = 0;
  double y = 0;  ///< its interval: from low to high
  double low = 0;
  double high = 0;
  std::size_t repetitions = 0;
  std::string paper_average{};  ///< empty: there is none
  std::size_t noisy = 0;        ///< of the repetitions
};
std::string csv_of(std::span<const DrawnRow> rows);

/// "inf" for infinity, as the scripts read it.
std::string csv_number(double value);

struct Drawing {
  std::string name;    ///< of its files
  std::string script;  ///< plots/<script>.gp
  std::string csv;     ///< what the script reads
  std::string title;
  std::string x_label;
  std::string y_label;
  std::string origin;        ///< "modelled on sim (erda-connectx3)"
  bool title_in_svg = true;  ///< a page has it as text; a PNG always has it inside
};

struct DrawingPlace {
  std::filesystem::path figures;  ///< gets NAME.csv, NAME.gp, NAME.svg and NAME.png
  std::filesystem::path plots;    ///< the scripts
  std::filesystem::path copies;   ///< gets copies of them, for NAME.gp to call
  std::string gnuplot = "gnuplot";
  /// Called several times a second while gnuplot draws. What it throws ends gnuplot, too.
  std::function<void()> while_drawing{};
};

/// All scripts: they load each other, so a figure can be drawn again only with all of them.
/// Returns the files written. Error: one cannot be written.
Expected<std::vector<std::filesystem::path>> copy_scripts(const DrawingPlace& place);

/// The images of one figure, or why there are none.
struct Drawn {
  std::vector<std::filesystem::path> files;  ///< those written
  /// Why an image is missing, which must not take other figures with it: the program is not
  /// installed; it failed (with the first line of its complaint) or drew nothing.
  std::optional<Error> problem;
};

/// Writes the CSV and the script, which whoever has the folder can run again, and runs it: without
/// a shell, so that no title or path is interpreted, and without the user's gnuplot settings, so
/// that figures are the same everywhere. The images come through a pipe and are written here, since
/// gnuplot does not notice a full disk. An image that cannot be drawn is removed if an earlier
/// report has left one.
/// Precondition: copy_scripts.
/// Error: a file cannot be written.
Expected<Drawn> draw(const Drawing& drawing, const DrawingPlace& place);

}  // namespace perdura::report
