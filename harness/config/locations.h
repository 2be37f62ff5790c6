// Where experiments, profiles, workloads, sites and plots are found.
//
// A name is looked up as experiments/NAME.toml, profiles/NAME.toml, sites/NAME.toml or
// workloads/NAME in three places, the first one that has it wins: $PERDURA_HOME, the current
// folder, and what belongs to this program: share/perdura of the prefix that it was installed to,
// wherever that was moved, or the source tree that it was built from. What contains a '/' or ends
// in .toml is a path and is taken as it is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/config/experiment.h"

namespace perdura::harness {

enum class FileKind : std::uint8_t { experiment, profile, workload, site };

class Locations {
 public:
  explicit Locations(std::vector<std::filesystem::path> roots) : roots_(std::move(roots)) {}
  // The locations described above.
  static Locations standard();
  // Where the files are that belong to the program of that path.
  static std::filesystem::path of_program(const std::filesystem::path& program);
  // The same locations with `folder` in place of the current folder; relative paths start there,
  // too.
  Locations from(const std::filesystem::path& folder) const;

  // Throws UsageError, with the place where the name was written, if there is no such file; the
  // message names those that exist.
  std::filesystem::path find(FileKind kind, const Located& name) const;

  // All names of that kind that can be found, sorted.
  std::vector<std::string> names(FileKind kind) const;

  // Throws UsageError, with its place, if a figure's script is not where the others are.
  void check_plots(const Experiment& experiment) const;

  // The folder of gnuplot scripts: the first one that contains the scripts' common part.
  std::filesystem::path plots() const;

  // The first folder or file of that relative path that exists, else the path itself.
  std::filesystem::path first_existing(const std::filesystem::path& relative) const;

 private:
  std::vector<std::filesystem::path> roots_;
  std::filesystem::path folder_{};  // empty: the current one
};

// The name of a file in results: without its folders and without the extension .toml.
std::string plain_name(FileKind kind, const std::filesystem::path& file);

}  // namespace perdura::harness
