#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "harness/schema/error.h"

namespace perdura::report {

/// What a script in plots/ is told (plots/style.gp).
struct Drawing {
  std::filesystem::path csv;    ///< the data
  std::filesystem::path image;  ///< where the figure goes
  std::string format;           ///< svg, png
  std::string title;            ///< empty: none inside the image
  std::string x_label;
  std::string y_label;
  std::string origin;  ///< "modelled on sim (erda-connectx3)"
  /// Called several times a second while gnuplot draws. What it throws ends gnuplot, too.
  std::function<void()> while_drawing{};
};

/// Runs gnuplot: without a shell, so that no title or path is interpreted, and without the user's
/// gnuplot settings, so that figures are the same everywhere. The image comes through a pipe and is
/// written here, since gnuplot does not notice a full disk.
/// Errors: the program is not installed; it failed (with the first line of its complaint) or drew
/// nothing; the image cannot be written.
Expected<void> run_gnuplot(const std::string& program, const std::filesystem::path& script,
                           const Drawing& drawing);

}  // namespace perdura::report
