// The figures of a probe's folder: a CSV each, in the form of a report's figures (docs/figures.md),
// drawn by the same scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/probe/probe.h"

namespace perdura::bench {

struct ProbeFigure {
  std::string name{};    // of its files
  std::string script{};  // plots/<script>.gp
  std::string title{};
  std::string x_label{};
  std::string y_label{};
  std::string csv{};
};

// Those for which there are readings.
std::vector<ProbeFigure> figures_of(const std::vector<Reading>& readings);

// Writes <folder>/<name>.csv and draws <name>.svg and <name>.png beside it. `origin` says on each
// where the numbers come from. Returns what went wrong, or nothing: then there are no more figures.
std::string draw(const std::vector<ProbeFigure>& figures, const std::filesystem::path& folder,
                 const std::filesystem::path& plots, const std::string& origin);

}  // namespace perdura::bench
