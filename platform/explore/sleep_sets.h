// All runs, depth first, but of those that differ only in the order of steps that could be
// exchanged, as few as sleep sets find (Godefroid, "Partial-Order Methods for the Verification of
// Concurrent Systems", 1996): all states in which the program may end are reached. Needs no state
// of the program, only what each step touches (pmem::NextStep).
//
// A step that was tried first somewhere sleeps in the alternatives to it, until a step comes that
// touches something that it touches, too; a run ends where all that could be next sleep.
#pragma once

#include <span>
#include <vector>

#include "platform/explore/strategy.h"

namespace perdura::explore {

class SleepSets final : public Strategy {
 public:
  // Thrown by choose_step() where all that follows is equivalent to what was tried before.
  struct Equivalent {};

  bool next() override;
  // Alternatives that are no steps: all are tried.
  std::size_t choose(std::size_t n) override;
  // Must be called even if there is only one step.
  std::size_t choose_step(std::span<const pmem::NextStep> steps) override;
  // Runs that were ended early.
  std::uint64_t cut() const { return cut_; }

 private:
  struct Choice {
    std::vector<pmem::NextStep> steps;   // empty: alternatives that are no steps
    std::vector<pmem::NextStep> asleep;  // those tried here before included
    std::size_t taken = 0;
    std::size_t of = 0;
  };
  bool advance(Choice& choice);

  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::vector<pmem::NextStep> asleep_;  // where the run is
  std::uint64_t cut_ = 0;
};

}  // namespace perdura::explore
