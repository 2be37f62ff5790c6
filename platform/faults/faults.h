// Decides which faults an endpoint's operations meet. Internal to platform/faults.
#pragma once

#include <memory>
#include <vector>

#include "platform/faults/faulty_thread.h"
#include "platform/pmem/model/choices.h"

namespace perdura::faults {

class Line;

// The faults of one operation.
struct Fate {
  bool swallowed = false;  // not posted, because the node is dead
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

  // Counts the operation and decides its faults.
  Fate next(const fabric::WorkRequest& request);
  // Called when the operation at which the node dies has been posted, or has completed.
  void die_after_post();
  void die_at_completion();

  Thread& thread() { return thread_; }
  bool dead() const { return dead_; }

  // Copies the data of an inlined operation that is delayed: its caller may reuse the buffer at
  // once, and the data is needed until the operation is posted. give_back() frees the copy.
  fabric::LocalBuffer keep(const fabric::LocalPieces& data);
  // `kept` may have any length.
  void give_back(const fabric::LocalBuffer& kept) { free_.push_back(kept); }

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
