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
  /// Its content as its driver parsed it; nullopt in folders of earlier versions.
  std::optional<std::map<std::string, std::string>> settings;
};

/// A folder that `perdura run` wrote (docs/results.md).
struct ResultFolder {
  std::filesystem::path path;
  std::string name;
  bool probed = false;                 ///< written by `perdura probe`, with a probes.csv
  Points points;                       ///< empty if the folder was read without its rows
  std::optional<Timelines> timelines;  ///< if the folder has a timeline.csv
  schema::Specs specs;
  std::string experiment_text;                                ///< experiment.toml as it was run
  std::vector<std::pair<std::string, std::string>> manifest;  ///< "machine.cpu" and its value
  std::vector<InputFile> workloads;                           ///< from the manifest

  /// A remark for the user about the folder's files, in one line; empty: none.
  std::string note;

  /// The manifest's value of that name, or "" if there is none.
  std::string from_manifest(const std::string& name_in_manifest) const;

  /// For an incomplete sweep, "23 of 60 points": averages over these are not averages over the
  /// whole sweep. Empty if the sweep is complete.
  std::string unfinished() const;
};

enum class Rows { keep, leave_out };

/// Reads `input`, or, if it is a folder of result folders, each of those, sorted by name. With
/// Rows::leave_out, rows are neither kept nor checked, for callers that read them one by one in
/// little memory. `reading` is called for each folder before it is read; an exception that it
/// throws ends the reading. Errors: a file is missing, damaged, or does not match the folder's
/// manifest.
schema::Expected<std::vector<ResultFolder>> read_result_folders(
    const std::filesystem::path& input, Rows rows = Rows::keep,
    const std::function<void(const std::filesystem::path& folder)>& reading = {});

}  // namespace perdura::report
