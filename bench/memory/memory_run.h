// One point of a sweep of replicated memory on one process: starts the threads of the nodes that
// this process runs, defines what they do in each phase (harness/run/phases.h), and collects what
// they measured.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/driver/crew.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"
#include "services/memory/memory.h"

namespace perdura::bench {

class MemoryRun {
 public:
  MemoryRun(Platform& platform, const harness::Point& point, const services::MemorySystem& system);
  // Rethrows the exception that ended the platform's run(); such a run has no results.
  harness::Measurement execute();

 private:
  class Application;
  class Copy;

  bool is_primary(NodeId node) const { return node == config_.nodes.front(); }
  void start_threads();
  Task<> use(Thread& thread, std::uint32_t index);
  Task<> serve(Thread& thread);
  void open(Thread& thread);
  std::size_t node_index(Thread& thread) const;  // its node's index in MemoryConfig
  // Notes the contents of the copy on the thread's node, for MemoryDriver::conclude.
  void note_contents(Thread& thread);

  Platform& platform_;
  const harness::Point& point_;
  const services::MemorySystem& system_;
  services::MemoryConfig config_;
  std::uint32_t workers_;  // number for each copy
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> opened_;
  std::unique_ptr<Platform::Barrier> served_;
  std::optional<Crew> crew_;
  // The replicas of this process, by node.
  std::vector<std::shared_ptr<services::MemoryReplica>> replicas_;
  // The measurement of each application's thread, by index.
  std::vector<harness::Measurement> applications_;
  std::vector<Time> first_starts_;
  std::vector<Time> last_ends_;
  std::vector<std::uint64_t> operations_at_work_;
  std::vector<std::vector<double>> session_metrics_;
  // By node.
  std::vector<std::vector<double>> replica_metrics_;
  std::vector<harness::Measurement> contents_;
};

}  // namespace perdura::bench
