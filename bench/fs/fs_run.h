// Runs one point of a sweep of file systems in one process: makes and mounts the file system,
// starts the threads of the application, defines their work in each phase (harness/run/phases.h),
// and collects their measurements.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/driver/crew.h"
#include "bench/fs/file_workload.h"
#include "bench/fs/replication.h"
#include "bench/fs/target.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"
#include "services/fs/fs.h"

namespace perdura::bench {

class FsRun {
 public:
  // `system` is null for a directory of this machine, `memory` if the file system has persistent
  // memory of its own.
  FsRun(Platform& platform, const harness::Point& point, const fs::FsSystem* system,
        const services::MemorySystem* memory);
  // Rethrows the exception that ended the platform's run(); such a run has no results.
  harness::Measurement execute();

 private:
  class Application;
  class Copy;

  void start_copies();
  Task<> serve(Thread& thread);
  Task<> use(Thread& thread, std::uint32_t index);
  harness::Measurement collect() const;

  Platform& platform_;
  const harness::Point& point_;
  const fs::FsSystem* system_;
  std::uint32_t threads_;
  std::unique_ptr<FileWorkload> workload_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> barrier_;  // threads meet here at the start and the end
  std::optional<Crew> crew_;
  std::atomic<bool> stop_{false};  // set when a thread cannot go on

  std::optional<Replication> replication_;

  // The file system or folder that the threads use; only one of the two exists.
  std::shared_ptr<fs::FileSystem> files_;
  std::optional<PathFolder> folder_;
  std::unique_ptr<Platform::Barrier> opened_;  // shared with the threads of copies
  std::unique_ptr<Platform::Barrier> served_;

  // Indexed by thread.
  std::vector<harness::Measurement> applications_;
  std::vector<Time> first_starts_;
  std::vector<Time> last_ends_;
  std::vector<std::uint64_t> operations_at_work_;
  std::vector<std::vector<double>> session_metrics_;
  std::vector<harness::Measurement> copies_;  // by node
};

// The point must run a system of the table.
fs::FsConfig fs_config(const harness::Point& point);
// The directory of a point that runs the system `path`; empty if it names none.
std::string path_of(const harness::Point& point);

}  // namespace perdura::bench
