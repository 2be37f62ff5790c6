// The decisions about an endpoint's operations. Internal.
#pragma once

#include <memory>
#include <vector>

#include "platform/faults/faulty_thread.h"
#include "platform/pmem/model/choices.h"

namespace perdura::faults {

class Line;

// What happens to an operation.
struct Fate {
  bool swallowed = false;  // the node is dead
  bool loses_connection = false;
  bool duplicated = false;
  bool dies_after_post = false;
  bool dies_at_completion = false;
  Picoseconds held{};
  Picoseconds slow{};
};

class Faults {
 public:
  Faults(Thread& thread, const FaultPlan& plan, Death death);

  // Counts the operation, and decides.
  Fate next(const fabric::WorkRequest& request);
  // The operation at which the node dies has been posted, or has completed.
  void die_after_post();
  void die_at_completion();

  Thread& thread() { return thread_; }
  bool dead() const { return dead_; }

  // Memory for inlined data, which an operation takes along when it is posted, until a late one is.
  fabric::LocalBuffer keep(const fabric::LocalPieces& data);
  void give_back(const fabric::LocalBuffer& kept) { free_.push_back(kept); }  // of any length

  FaultCounts counts;
  bool enabled = true;
  std::vector<Line*> lines;

 private:
  bool happens(double probability);
  Picoseconds time_in(const TimeRange& range);
  void die(Picoseconds after);

  Thread& thread_;
  FaultPlan plan_;
  Death death_;
  pmem::RandomChoices random_;
  bool dead_ = false;
  std::vector<std::unique_ptr<pmem::Region>> regions_;
  std::vector<fabric::LocalBuffer> free_;
};

}  // namespace perdura::faults
