// Files of what `perdura soak` has found. A file says in names and choices what was run, so that it
// can be repeated by a later build (`perdura crash --replay`), and what was found.
#pragma once

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

std::string file_name(const bench::SoakFinding& finding);
std::string text_of(const bench::SoakFinding& finding);
// Throws UsageError with one line that names the file, if it is no such file, if it is damaged, or
// if it names something that this build does not have.
FindingFile read_finding(const std::string& file);

}  // namespace perdura::harness
