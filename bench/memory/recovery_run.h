// Runs the nodes of this process for one point of a sweep of replicated memory in which a node
// fails (failure.h). Each node has a thread that never fails, its keeper. It starts the threads
// that can fail, makes them fail by stopping them, and starts others in their place; it also takes
// part in the phases (harness/run/phases.h) for them. The application goes on syncing until the
// recovery has ended.
//
// All times of a recovery are read from the clock of the node that failed. The recovery begins when
// the new process begins to open its copy. If the primary failed, it ends when the application has
// mapped the region; otherwise it ends when the copy is complete and has applied a sync point that
// was made after the failure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/driver/crew.h"
#include "bench/memory/failure.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"
#include "services/memory/memory.h"

namespace perdura::bench {

class RecoveryRun {
 public:
  RecoveryRun(Platform& platform, const harness::Point& point,
              const services::MemorySystem& system);
  // Rethrows the exception that ended the platform's run(); such a run has no results.
  harness::Measurement execute();

 private:
  class Process;
  class PrimaryNode;
  class CopyNode;
  struct Times;

  Task<> keep(Thread& thread);
  std::size_t node_index(Thread& thread) const;  // its node's index in MemoryConfig
  CompletionMode mode_of(NodeId node) const;
  const std::string& role_of(NodeId node) const;
  void note_recovery(const Times& times, Bytes replayed, harness::Measurement& result) const;

  Platform& platform_;
  const harness::Point& point_;
  const services::MemorySystem& system_;
  services::MemoryConfig config_;
  Failure failure_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> served_;     // all copies are being served
  std::unique_ptr<Platform::Barrier> recovered_;  // the node that failed has recovered
  std::optional<Crew> crew_;                      // set in the process that has the primary
  std::uint64_t operations_ = 0;
  // By node.
  std::vector<harness::Measurement> results_;
  std::vector<std::unique_ptr<harness::PhaseWork>> nodes_;  // threads use them until run() returns
};

}  // namespace perdura::bench
