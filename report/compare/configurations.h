// A difference between two runs that no column of points.csv shows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/result_folder.h"

namespace perdura::compare {

struct Difference {
  std::string key;  ///< in experiment.toml, "workload.completion", or in manifest.json
  std::string first;
  std::string second;  ///< "-": not given
};

/// Two folders of the same experiment whose configurations differ.
struct Differing {
  std::filesystem::path first;
  std::filesystem::path second;
  std::vector<Difference> differences;  ///< by key
};

/// Compares every folder of both runs, those of a before those of b, with the first folder of the
/// same experiment. The comparison covers the experiments without figures and tables, and the
/// manifests without what differs between any two runs (dates, command lines), and for simulated
/// runs without the machine.
std::vector<Differing> differing_configurations(const std::vector<report::ResultFolder>& a,
                                                const std::vector<report::ResultFolder>& b);

/// "out/a and out/b were not run alike: seed 1 / 2, workload.completion 'polling' / 'event'".
std::string to_line(const Differing& differing);

}  // namespace perdura::compare
