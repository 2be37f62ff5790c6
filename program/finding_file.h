// Files with what `perdura soak` and `perdura crash` have found. A file describes the run by names
// and choices, so that a later build can repeat it (`perdura crash --replay`), and says what was
// found.
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "explore/history_loss.h"
#include "explore/soak.h"
#include "program/commands.h"

namespace perdura::program {

// The profile on whose model a soak runs.
inline constexpr std::string_view kSoakProfile = "erda-connectx3";

// The profile of this name. `option`: what named it, for errors; may be empty.
sim::Profile profile_named(const std::string& name, const std::string& option,
                           const CommandContext& context);

struct FindingFile {
  // A run that was drawn, of which only `kept` and `loss` of `run` are set; or one of a fixed
  // history.
  std::variant<explore::SoakFinding, explore::HistoryLoss> finding;
  std::string profile;
};

// Write the file of a finding, and beside it the diagram of its run (SVG), into a folder, which is
// created if necessary. There is no diagram where explore::explain() has none. `model` is the
// profile named `profile`. Throw UsageError if the folder cannot be created. Return the file's
// path.
std::filesystem::path write_finding(const explore::SoakFinding& finding, const std::string& profile,
                                    const sim::Profile& model, const std::filesystem::path& folder);
std::filesystem::path write_finding(const explore::HistoryLoss& loss, const std::string& profile,
                                    const sim::Profile& model, const std::filesystem::path& folder);
// The line, without its end, that tells of such a file.
std::string text_of_file(const std::filesystem::path& file);
// Throws UsageError with one line that names the file, if it is not such a file, is damaged, or
// refers to something that this build does not have.
FindingFile read_finding(const std::string& file);

}  // namespace perdura::program
