#include "harness/results/result_writer.h"

#include <fmt/format.h>

#include <system_error>

#include "harness/results/atomic_file.h"
#include "platform/error.h"

namespace perdura::harness {

namespace fs = std::filesystem;

fs::path next_result_folder(const fs::path& out, const std::string& experiment,
                            const std::string& platform) {
  for (std::uint64_t n = 1;; ++n) {
    fs::path folder = out / fmt::format("{}-{}-{}", experiment, platform, n);
    if (!fs::exists(folder)) return folder;
  }
}

ResultWriter::ResultWriter(fs::path folder, const std::string& experiment_text, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)), results_(manifest_.points) {
  std::error_code problem;
  if (fs::exists(folder_, problem)) {
    if (!fs::is_directory(folder_)) {
      throw UsageError(fmt::format("--out {}: is not a folder", folder_.string()));
    }
    if (!fs::is_empty(folder_, problem)) {
      throw UsageError(fmt::format(
          "--out {}: the folder is not empty; give a new one, results are never overwritten",
          folder_.string()));
    }
  } else if (!fs::create_directories(folder_, problem)) {
    throw PlatformError(
        fmt::format("{}: cannot be created: {}", folder_.string(), problem.message()));
  }
  write_atomically(folder_ / "experiment.toml", experiment_text);
  write();
}

void ResultWriter::add(std::size_t index, PointResult result) {
  if (!results_[index]) ++manifest_.points_done;
  results_[index] = std::move(result);
  if (std::chrono::steady_clock::now() - written_ >= std::chrono::seconds(1)) write();
}

void ResultWriter::finish(RunStatus status) {
  manifest_.status = status;
  write();
}

void ResultWriter::discard() {
  for (const char* file :
       {"points.csv", "histograms.csv", "timeline.csv", "manifest.json", "experiment.toml"}) {
    fs::remove(folder_ / file);
  }
  fs::remove(folder_);
}

void ResultWriter::write() {
  std::vector<const PointResult*> finished;
  for (const auto& result : results_) {
    if (result) finished.push_back(&*result);
  }
  write_atomically(folder_ / "points.csv", points_csv(finished));
  write_atomically(folder_ / "histograms.csv", histograms_csv(finished));
  if (const std::string timeline = timeline_csv(finished); !timeline.empty()) {
    write_atomically(folder_ / "timeline.csv", timeline);
  }
  write_atomically(folder_ / "manifest.json", to_json(manifest_));
  written_ = std::chrono::steady_clock::now();
}

}  // namespace perdura::harness
