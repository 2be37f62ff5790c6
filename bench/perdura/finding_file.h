// Files of what `perdura soak` has found. A file says in names and choices what was run, so that it
// can be repeated by a later build (`perdura crash --replay`), and what was found.
#pragma once

#include <filesystem>
#include <string>

#include "bench/crash/soak.h"
#include "harness/config/locations.h"

namespace perdura::harness {

// The profile on whose model a soak runs.
inline constexpr std::string_view kSoakProfile = "erda-connectx3";

struct FindingFile {
  bench::SoakFinding finding;  // as it was found: `run` has no more than `kept` and `loss`
  std::string profile;
};

// Writes the file of a finding, and beside it the diagram of its run (SVG), into a folder that need
// not exist yet. `model` is the profile that this name has. Throws UsageError if the folder cannot
// be made. Returns the file.
std::filesystem::path write_finding(const bench::SoakFinding& finding, const std::string& profile,
                                    const sim::Profile& model, const std::filesystem::path& folder);
// Throws UsageError with one line that names the file, if it is no such file, if it is damaged, or
// if it names something that this build does not have.
FindingFile read_finding(const std::string& file);

}  // namespace perdura::harness
