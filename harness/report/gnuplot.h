#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/report/error.h"

namespace perdura::report {

/// Runs `program -d -c script arguments...`: without a shell, so that no title or path is
/// interpreted, and without the user's gnuplot settings, so that figures are the same everywhere.
/// Errors: the program is not installed; it failed (with the first line of its complaint).
Expected<void> run_gnuplot(const std::string& program, const std::filesystem::path& script,
                           const std::vector<std::string>& arguments);

}  // namespace perdura::report
