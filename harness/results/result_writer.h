// Writes a result folder (docs/results.md) while a sweep runs: whatever is finished is on disk
// within about a second, in the order of the sweep, and every file is whole at every moment.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "harness/results/manifest.h"
#include "harness/results/points.h"

namespace perdura::harness {

// out/<experiment>-<platform>-<n> with the first n, from 1, that is free.
std::filesystem::path next_result_folder(const std::filesystem::path& out,
                                         const std::string& experiment,
                                         const std::string& platform);

class ResultWriter {
 public:
  // Creates the folder. Throws UsageError if it exists and holds anything, PlatformError if it
  // cannot be written.
  ResultWriter(std::filesystem::path folder, const std::string& experiment_text, Manifest manifest);

  // `index` is the point's place in the sweep, repetitions included.
  void add(std::size_t index, PointResult result);
  // Writes everything and the final state of the manifest.
  void finish(RunStatus status);

  // Takes the folder away again, with what has been written to it.
  void discard();

  const std::filesystem::path& folder() const { return folder_; }
  const std::optional<PointResult>& result(std::size_t index) const { return results_[index]; }
  std::size_t done() const { return manifest_.points_done; }

 private:
  void write();

  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<std::optional<PointResult>> results_;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace perdura::harness
