#include "harness/results/result_writer.h"

#include <fmt/format.h>

#include <map>
#include <system_error>

#include "harness/schema/csv_table.h"
#include "harness/schema/file_record.h"
#include "harness/text/atomic_file.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {

namespace fs = std::filesystem;

fs::path next_result_folder(const fs::path& out, const std::string& experiment,
                            const std::string& platform) {
  std::error_code problem;
  fs::create_directories(out, problem);
  for (std::uint64_t n = 1;; ++n) {
    fs::path folder = out / fmt::format("{}-{}-{}", experiment, platform, n);
    if (is_there(folder)) continue;
    // Another process may have made it meanwhile. Who uses a folder that cannot be made says why.
    if (fs::create_directory(folder, problem) || problem) return folder;
  }
}

ResultWriter::ResultWriter(fs::path folder, const std::string& experiment_text,
                           const Identity& identity, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)), results_(manifest_.points) {
  std::error_code problem;
  if (const PathKind kind = kind_of(folder_); kind != PathKind::nothing) {
    if (kind != PathKind::folder) {
      throw UsageError(fmt::format("--out {}: {}", folder_.string(), not_a_folder(folder_)));
    }
    if (!names_in(folder_).empty()) {
      const bool begun = is_there(journal_file(folder_));
      throw UsageError(fmt::format(
          "--out {}: the folder is not empty; give a new one, results are never overwritten{}",
          folder_.string(),
          begun ? fmt::format(", or finish its sweep with --continue {}", folder_.string()) : ""));
    }
  } else if (!fs::create_directories(folder_, problem)) {
    throw UsageError(fmt::format("--out {}: cannot be created: {}; give another place",
                                 folder_.string(), problem.message()));
  }
  // The journal is created last: if it exists, the sweep can be continued.
  if (!manifest_.site_text.empty()) write_atomically(folder_ / "site.toml", manifest_.site_text);
  write_atomically(folder_ / "experiment.toml", experiment_text);
  journal_ = Journal::create(journal_file(folder_), to_text(identity));
  journal_->append(journal_record(manifest_.sessions.back()));
  write(RunStatus::running);
}

ResultWriter::ResultWriter(fs::path folder, InterruptedSweep sweep, Manifest manifest)
    : folder_(std::move(folder)),
      manifest_(std::move(manifest)),
      journal_(std::move(sweep.journal)),
      results_(manifest_.points) {
  manifest_.files_before = schema::sound_files(folder_);
  // Removes temporary files that a killed process was writing.
  for (const fs::path& path : names_in(folder_)) {
    if (path.extension() == ".tmp") fs::remove(path);
  }
  journal_->append(journal_record(manifest_.sessions.back()));
}

void ResultWriter::add(std::size_t index, PointResult result, PointTime time) {
  const std::scoped_lock lock(mutex_);
  journal_->append(journal_record(FinishedPoint{index, time.wall, result.measurement}));
  put(index, std::move(result), std::move(time));
  if (std::chrono::steady_clock::now() - written_ >= std::chrono::seconds(1)) {
    write(RunStatus::running);
  }
}

void ResultWriter::restore(std::size_t index, PointResult result, PointTime time) {
  const std::scoped_lock lock(mutex_);
  put(index, std::move(result), std::move(time));
}

void ResultWriter::put(std::size_t index, PointResult result, PointTime time) {
  if (!results_[index]) ++manifest_.points_done;
  results_[index] = {std::move(result), std::move(time)};
}

void ResultWriter::finish(RunStatus status) {
  const std::scoped_lock lock(mutex_);
  finish_locked(status);
}

ResultWriter::Finish ResultWriter::finish_for_another(std::chrono::milliseconds patience) {
  if (!mutex_.try_lock_for(patience)) return Finish::busy;
  if (finished_) {
    mutex_.unlock();
    return Finish::was_finished;
  }
  // The mutex stays locked, so that no other thread writes results any more.
  finish_locked(RunStatus::interrupted);
  return Finish::finished;
}

void ResultWriter::finish_locked(RunStatus status) {
  try {
    write(status);
  } catch (const PlatformError&) {
    manifest_.status = status == RunStatus::complete ? RunStatus::failed : status;
    // Even a full disk may have room for a file as small as the manifest.
    try {
      write_atomically(folder_ / "manifest.json", to_json(manifest_));
    } catch (const PlatformError&) {  // the first error is more useful
    }
    throw;
  }
  finished_ = true;
  if (status == RunStatus::complete) fs::remove(journal_file(folder_));
}

void ResultWriter::discard() {
  for (const char* file : {"points.csv", "histograms.csv", "timeline.csv", "times.csv",
                           "manifest.json", "experiment.toml", "site.toml"}) {
    fs::remove(folder_ / file);
  }
  fs::remove(journal_file(folder_));
  fs::remove(folder_);
}

// The manifest is written first, so that whenever the process is killed, each file matches either
// the old or the new record in the manifest. It is written again at the end if its state changes,
// so that it says "complete" only when the sweep is.
void ResultWriter::write(RunStatus status) {
  std::vector<const PointResult*> finished;
  std::string times = "point,label,operations,wall_s\n";
  for (std::size_t index = 0; index < results_.size(); ++index) {
    if (!results_[index]) continue;
    const auto& [result, time] = *results_[index];
    finished.push_back(&result);
    times += fmt::format("{},{},{},{:.6f}\n", index + 1, schema::csv_cell(time.label),
                         time.operations, std::chrono::duration<double>(time.wall).count());
  }
  std::map<std::string, std::string> tables{{"points.csv", points_csv(finished, manifest_.schema)},
                                            {"histograms.csv", histograms_csv(finished)}};
  if (std::string timeline = timeline_csv(finished, manifest_.schema); !timeline.empty()) {
    tables["timeline.csv"] = std::move(timeline);
  }
  manifest_.files.clear();
  for (const auto& [name, text] : tables) manifest_.files[name] = schema::record_of(text);
  write_atomically(folder_ / "manifest.json", to_json(manifest_));
  for (const auto& [name, text] : tables) write_atomically(folder_ / name, text);
  write_atomically(folder_ / "times.csv", times);
  manifest_.files_before = manifest_.files;
  if (status != RunStatus::running) {
    manifest_.status = status;
    manifest_.files_before.clear();
    write_atomically(folder_ / "manifest.json", to_json(manifest_));
  }
  written_ = std::chrono::steady_clock::now();
}

}  // namespace perdura::harness
