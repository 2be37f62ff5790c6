// Files with the findings of `perdura soak`. A file describes the run by names and choices, so that
// a later build can repeat it (`perdura crash --replay`), and says what was found.
#pragma once

#include <filesystem>
#include <string>

#include "explore/soak.h"
#include "harness/config/locations.h"

namespace perdura::program {

// The profile on whose model a soak runs.
inline constexpr std::string_view kSoakProfile = "erda-connectx3";

struct FindingFile {
  explore::SoakFinding finding;  // only `kept` and `loss` of its `run` are set
  std::string profile;
};

// Writes the file of a finding, and beside it the diagram of its run (SVG), into a folder, which is
// created if necessary. `model` is the profile named `profile`. Throws UsageError if the folder
// cannot be created. Returns the file's path.
std::filesystem::path write_finding(const explore::SoakFinding& finding, const std::string& profile,
                                    const sim::Profile& model, const std::filesystem::path& folder);
// Throws UsageError with one line that names the file, if it is not such a file, is damaged, or
// refers to something that this build does not have.
FindingFile read_finding(const std::string& file);

}  // namespace perdura::program
