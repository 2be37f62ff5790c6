// One point of a sweep of replicated memory within which a process fails (failure.h), on one
// process of the run. A node has a thread that does not fail, its keeper: it starts the threads
// that do, stops them and starts others, and takes part in the phases (harness/run/phases.h) for
// them. The application goes on syncing until the recovery has ended.
//
// All times of a recovery are of the clock of the node that failed. It begins when the new process
// begins to open its copy. It ends, of a primary, when the application has mapped the region; of a
// copy, when that is complete and a sync point from after the failure has been applied.
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
  // Rethrows the exception that left the platform's run(); nothing more is known of such a run.
  harness::Measurement execute();

 private:
  class Process;
  class PrimaryNode;
  class CopyNode;
  struct Times;

  Task<> keep(Thread& thread);
  std::size_t number_of(Thread& thread) const;  // of its node
  CompletionMode mode_of(NodeId node) const;
  const std::string& role_of(NodeId node) const;
  void note_recovery(const Times& times, Bytes replayed, harness::Measurement& result) const;

  Platform& platform_;
  const harness::Point& point_;
  const services::MemorySystem& system_;
  services::MemoryConfig config_;
  Failure failure_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> served_;     // all copies are
  std::unique_ptr<Platform::Barrier> recovered_;  // whoever has failed is
  std::optional<Crew> crew_;                      // of the process that has the primary
  std::uint64_t operations_ = 0;
  // By node.
  std::vector<harness::Measurement> results_;
  std::vector<std::unique_ptr<harness::PhaseWork>> nodes_;  // threads use them until run() returns
};

}  // namespace perdura::bench
