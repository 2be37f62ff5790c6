// The figures of a probe's folder: a CSV each, in the form of a report's figures (docs/figures.md),
// drawn by the same scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/probe/probe.h"
#include "harness/report/drawing.h"

namespace perdura::bench {

// Those for which there are readings. `origin` says on each where the numbers come from.
std::vector<report::Drawing> figures_of(const std::vector<Reading>& readings,
                                        const std::string& origin);

// Draws them into the folder, with the scripts beside them. Returns what went wrong, or nothing:
// then there are no more figures.
std::string draw(const std::vector<report::Drawing>& figures, const std::filesystem::path& folder,
                 const std::filesystem::path& plots);

}  // namespace perdura::bench
