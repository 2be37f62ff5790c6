// Runs one point of a sweep of file systems: makes and mounts the file system, on the application's
// node or on its servers, starts the threads of the application and of the servers that are in this
// process, defines their work in each phase (harness/run/phases.h), and collects their measurements.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/driver/crew.h"
#include "bench/fs/file_servers.h"
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
  class Server;

  void check_processes() const;
  bool has_application() const;  // this process
  void start_application();
  void start_copies();
  void start_servers();
  Task<> serve(Thread& thread);
  Task<> serve_part(Thread& thread);
  bool is_first_on_node(std::uint32_t index) const { return index < nodes_.size(); }
  Task<> use(Thread& thread, std::uint32_t index);
  harness::Measurement collect() const;

  Platform& platform_;
  const harness::Point& point_;
  const fs::FsSystem* system_;
  std::uint32_t threads_;
  Picoseconds think_;  // before each operation
  std::unique_ptr<FileWorkload> workload_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> barrier_;  // threads meet here at the start and the end
  std::optional<Crew> crew_;
  std::atomic<bool> stop_{false};  // set when a thread cannot go on

  // At most one of the two exists.
  std::optional<Replication> replication_;
  std::optional<FileServers> servers_;

  // The file system or folder that the threads use; only one of the two exists. A file system has a
  // mount for each of the application's nodes.
  std::vector<NodeId> nodes_;
  std::vector<std::shared_ptr<fs::FileSystem>> mounts_;
  std::optional<PathFolder> folder_;
  std::unique_ptr<Platform::Barrier> opened_;  // shared with the threads of copies or servers
  std::unique_ptr<Platform::Barrier> served_;
  std::unique_ptr<Platform::Barrier> left_;  // the threads meet here when nobody has it mounted

  // Indexed by thread.
  std::vector<harness::Measurement> applications_;
  std::vector<Time> first_starts_;
  std::vector<Time> last_ends_;
  std::vector<std::uint64_t> operations_at_work_;
  std::vector<std::vector<double>> session_metrics_;
  // By node: those of copies and servers.
  std::vector<harness::Measurement> copies_;
  std::vector<std::vector<double>> server_metrics_;
};

// The configuration of a point that runs a system of the table.
fs::FsConfig fs_config(const harness::Point& point, const fs::FsSystem& system);
// The nodes that have the threads of the application: thread i is on node i modulo their number.
std::vector<NodeId> application_nodes(const harness::Point& point);

}  // namespace perdura::bench
