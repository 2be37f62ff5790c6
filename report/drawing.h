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
  std::string series;  ///< `label` is its text in the legend
  std::string label;
  std::size_t series_index = 0;
  std::size_t style = 0;
  std::string x;  ///< a number if the axis is numeric
  std::string x_label;
  std::size_t x_index = 0;
  double y = 0;  ///< its interval is [low, high]
  double low = 0;
  double high = 0;
  std::size_t repetitions = 0;
  std::string paper_average{};  ///< empty: none
  std::size_t noisy = 0;        ///< number of repetitions
};
std::string csv_of(std::span<const DrawnRow> rows);

/// "inf" for infinity, which the scripts can read.
std::string csv_number(double value);

struct Drawing {
  std::string name;    ///< base name of its files
  std::string script;  ///< plots/<script>.gp
  std::string csv;     ///< the script's input
  std::string title;
  std::string x_label;
  std::string y_label;
  std::string origin;        ///< "modelled on sim (erda-connectx3)"
  bool title_in_svg = true;  ///< false: a page shows it as text; a PNG always contains it
};

struct DrawingPlace {
  std::filesystem::path figures;  ///< gets NAME.csv, NAME.gp, NAME.svg and NAME.png
  std::filesystem::path plots;    ///< the scripts
  std::filesystem::path copies;   ///< receives copies of the scripts, for NAME.gp to call
  std::string gnuplot = "gnuplot";
  /// Called several times a second while gnuplot draws. An exception that it throws ends gnuplot,
  /// too.
  std::function<void()> while_drawing{};
};

/// Copies all scripts: they load each other, so a figure can be redrawn only with all of them.
/// Returns the files written. Error: one cannot be written.
schema::Expected<std::vector<std::filesystem::path>> copy_scripts(const DrawingPlace& place);

/// The files of one figure, and why an image is missing.
struct Drawn {
  std::vector<std::filesystem::path> files;  ///< those written
  /// The reason why an image is missing, which must not prevent other figures: the program is not
  /// installed, it failed (with the first line of its complaint), or it drew nothing.
  std::optional<schema::Error> problem;
};

/// Writes the CSV and the script, which users of the folder can run again, and runs the script:
/// without a shell, so that no title or path is interpreted, and without the user's gnuplot
/// settings, so that figures are the same everywhere. gnuplot writes images to a pipe and this
/// process writes the files, since gnuplot does not notice a full disk. If an image cannot be
/// drawn, one left by an earlier report is removed. Precondition: copy_scripts(). Error: a file
/// cannot be written.
schema::Expected<Drawn> draw(const Drawing& drawing, const DrawingPlace& place);

}  // namespace perdura::report
