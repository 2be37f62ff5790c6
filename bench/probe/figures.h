// The figures of a probe's folder: one CSV each, in the format of a report's figures
// (docs/figures.md), drawn by the same scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/probe/probe.h"
#include "report/drawing.h"

namespace perdura::bench {

// Returns the figures for which there are readings. `origin` is printed on each and says where the
// numbers come from.
std::vector<report::Drawing> figures_of(const std::vector<Reading>& readings,
                                        const std::string& origin);

// Draws the figures into the folder, with their scripts beside them. Returns an error message if
// drawing failed, after which it draws no further figures; else an empty string.
std::string draw(const std::vector<report::Drawing>& figures, const std::filesystem::path& folder,
                 const std::filesystem::path& plots);

}  // namespace perdura::bench
