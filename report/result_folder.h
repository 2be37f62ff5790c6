#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/schema/error.h"
#include "harness/schema/spec.h"
#include "report/points.h"
#include "report/timeline.h"

namespace perdura::report {

/// A file that points were made from, such as a workload.
struct InputFile {
  std::string name;
  std::string text;
  /// What it says, as its driver read it; folders of earlier versions do not have it.
  std::optional<std::map<std::string, std::string>> settings;
};

/// A folder that `perdura run` wrote (docs/results.md).
struct ResultFolder {
  std::filesystem::path path;
  std::string name;
  bool probed = false;                 ///< by `perdura probe`, which writes a probes.csv
  Points points;                       ///< none if the folder was read without its rows
  std::optional<Timelines> timelines;  ///< if the folder has a timeline.csv
  Specs specs;
  std::string experiment_text;                                ///< experiment.toml as it was run
  std::vector<std::pair<std::string, std::string>> manifest;  ///< "machine.cpu" and its value
  std::vector<InputFile> workloads;                           ///< of the manifest

  /// What a user should know of the folder's files, in one line; empty: nothing.
  std::string note;

  /// The manifest's value, or "" if it has none of that name.
  std::string from_manifest(const std::string& name_in_manifest) const;

  /// Of a sweep that has not ended, "23 of 60 points": an average over what it has is none over
  /// what it was to measure. Empty if the sweep is complete.
  std::string unfinished() const;
};

enum class Rows { keep, leave_out };

/// Reads `input`, or, if it is a folder of result folders, each of those in the order of names.
/// `rows` leaves out: whoever reads those one by one needs no memory for them; they are neither
/// kept nor checked.
/// `reading` is told of each folder before it is read; what it throws ends the reading.
/// Errors: a file is missing, damaged, or not what the folder's manifest says was written.
Expected<std::vector<ResultFolder>> read_result_folders(
    const std::filesystem::path& input, Rows rows = Rows::keep,
    const std::function<void(const std::filesystem::path& folder)>& reading = {});

}  // namespace perdura::report
