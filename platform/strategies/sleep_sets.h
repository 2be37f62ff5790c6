// All runs, depth first; but of runs that differ only in the order of commuting steps, only as many
// as sleep sets require (Godefroid, "Partial-Order Methods for the Verification of Concurrent
// Systems", 1996). All states in which the program may end are reached. The strategy needs no state
// of the program, only the things that each step touches (pmem::NextStep).
//
// A step that has been tried at some point sleeps in the alternatives to it, until a step is taken
// that touches something that it touches, too; a run ends where all possible next steps sleep.
#pragma once

#include <span>
#include <vector>

#include "platform/strategies/strategy.h"

namespace perdura::strategies {

class SleepSets final : public Strategy {
 public:
  // Thrown by choose_step() where the rest of the run is equivalent to something tried before.
  struct Equivalent {};

  bool next() override;
  // For alternatives that are not steps: all are tried.
  std::size_t choose(std::size_t n) override;
  // Must be called even if there is only one step.
  std::size_t choose_step(std::span<const pmem::NextStep> steps) override;
  // The number of runs that were ended early.
  std::uint64_t cut() const { return cut_; }

 private:
  struct Choice {
    std::vector<pmem::NextStep> steps;   // empty: the alternatives are not steps
    std::vector<pmem::NextStep> asleep;  // including those that were tried here
    std::size_t taken = 0;
    std::size_t of = 0;
  };
  bool advance(Choice& choice);

  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::vector<pmem::NextStep> asleep_;  // steps asleep at the current point of the run
  std::uint64_t cut_ = 0;
};

}  // namespace perdura::strategies
