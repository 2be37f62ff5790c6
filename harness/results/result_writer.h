// Writes a result folder (docs/results.md) while a sweep runs. When add() returns, the point is
// durable in the journal; the other files contain it within about a second. Each of these is
// replaced atomically, and the manifest records its contents. The journal is removed when the sweep
// is complete.
#pragma once

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/interrupted_sweep.h"
#include "harness/results/manifest.h"
#include "harness/results/points.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {

// Makes out/<experiment>-<platform>-<n> with the smallest n, from 1, that does not exist, and
// returns it. Several processes that call this at once get a folder each. If it cannot be made, it
// is only returned.
std::filesystem::path next_result_folder(const std::filesystem::path& out,
                                         const std::string& experiment,
                                         const std::string& platform);

// A row of times.csv, from which `perdura plan` estimates how long a sweep will take.
struct PointTime {
  std::string label{};
  std::uint64_t operations = 0;     // operations of the whole run, including loading and warming up
  std::chrono::nanoseconds wall{};  // real time
};

class ResultWriter {
 public:
  // Creates the folder. Throws UsageError if it exists and is not empty, or cannot be created, and
  // PlatformError if it cannot be written. `manifest` has one session: this one.
  ResultWriter(std::filesystem::path folder, const std::string& experiment_text,
               const Identity& identity, Manifest manifest);
  // Continues in the folder of an interrupted sweep, whose finished points the caller must
  // restore(). The manifest's last session is this one.
  ResultWriter(std::filesystem::path folder, InterruptedSweep sweep, Manifest manifest);

  // `index` is the point's place in the sweep, repetitions included.
  void add(std::size_t index, PointResult result, PointTime time);
  // The same for a point that is already in the journal.
  void restore(std::size_t index, PointResult result, PointTime time);
  // Writes everything, including the final state of the manifest. If that fails, writes as much as
  // possible and throws PlatformError.
  void finish(RunStatus status);
  // Performs finish(interrupted) on another thread than the one that adds points, when that one is
  // stuck and the process is about to end.
  // * finished: done. Any other thread that calls one of these functions from now on waits forever,
  //   so that what is reported about the folder stays true.
  // * was_finished: the other thread has done it already. Nothing was changed.
  // * busy: the other thread is writing and did not end within `patience`. Nothing was changed.
  enum class Finish { finished, was_finished, busy };
  Finish finish_for_another(std::chrono::milliseconds patience);

  // Sets the media writes that the manifest reports; must be called before finish().
  void set_media_writes(MediaWrites writes) { manifest_.media_writes = std::move(writes); }

  // Deletes the folder with everything that was written to it.
  void discard();

  const std::filesystem::path& folder() const { return folder_; }
  bool has(std::size_t index) const { return results_[index].has_value(); }
  // The result of a point that has one.
  const PointResult& result(std::size_t index) const { return results_[index]->result; }
  std::size_t done() const { return manifest_.points_done; }
  // True if the journal is still where it was created: the folder may have been moved.
  bool can_be_continued() const { return is_there(journal_file(folder_)); }

 private:
  struct Finished {
    PointResult result;
    PointTime time;
  };

  void put(std::size_t index, PointResult result, PointTime time);
  void write(RunStatus status);
  void finish_locked(RunStatus status);

  std::timed_mutex mutex_;  // guards everything below
  std::filesystem::path folder_;
  Manifest manifest_;
  std::optional<Journal> journal_;
  std::vector<std::optional<Finished>> results_;
  std::chrono::steady_clock::time_point written_;
  bool finished_ = false;
};

}  // namespace perdura::harness
