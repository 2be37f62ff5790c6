// What two runs differ in that no column of points.csv tells.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/report/result_folder.h"

namespace perdura::compare {

struct Difference {
  std::string key;  ///< of experiment.toml, "workload.completion", or of manifest.json
  std::string first;
  std::string second;  ///< "-": not given
};

/// Two folders of the same experiment that were not run alike.
struct Differing {
  std::filesystem::path first;
  std::filesystem::path second;
  std::vector<Difference> differences;  ///< by key
};

/// Sets every folder of both runs beside the first one of the same experiment, those of a before
/// those of b: their experiments without figures and tables, and their manifests without what
/// differs from run to run (dates, command lines), of simulated runs also without the machine.
std::vector<Differing> differing_configurations(const std::vector<report::ResultFolder>& a,
                                                const std::vector<report::ResultFolder>& b);

/// "out/a and out/b were not run alike: seed 1 / 2, workload.completion 'polling' / 'event'".
std::string to_line(const Differing& differing);

}  // namespace perdura::compare
