// Where experiments, profiles, workloads, sites and plots are found.
//
// A name is looked up as experiments/NAME.toml, profiles/NAME.toml, sites/NAME.toml or
// workloads/NAME or workloads/traces/NAME.txt in the program's folders
// (harness/program/data_folders.h). A name that contains a '/' or ends in .toml is a path and is
// not looked up.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/config/experiment.h"
#include "harness/program/data_folders.h"

namespace perdura::harness {

enum class FileKind : std::uint8_t { experiment, profile, workload, site, trace };

class Locations : public DataFolders {
 public:
  using DataFolders::DataFolders;
  // The locations of this program.
  static Locations standard() { return Locations(DataFolders::standard()); }
  // The same locations with `folder` in place of the current folder, also for relative paths.
  Locations from(const std::filesystem::path& folder) const;

  // Throws UsageError, with the place where the name was written, if there is no such file; the
  // message lists those that exist.
  std::filesystem::path find(FileKind kind, const Located& name) const;

  // The names of all files of that kind that can be found, sorted.
  std::vector<std::string> names(FileKind kind) const;

  // Throws UsageError, with its place, if a figure's script is not among the scripts in plots/.
  void check_plots(const Experiment& experiment) const;

 private:
  explicit Locations(DataFolders folders) : DataFolders(std::move(folders)) {}

  std::filesystem::path folder_{};  // empty: the current folder
};

// The name of a file in results: without its folders and without the extension .toml.
std::string plain_name(FileKind kind, const std::filesystem::path& file);

}  // namespace perdura::harness
