// Strategies decide what many runs of a program choose, one run after the other. A program asks a
// pmem::Choices wherever it may go either way, and does not know which strategy answers:
//
//   for (Bounded strategy(1); strategy.next();) run(strategy);
//
// Which runs there are (all, all with few deviations, random ones) is the strategy's; that runs
// which can only end alike are left out is separate (exhaustive.h, sleep_sets.h). A run must be
// deterministic: given the same answers so far, it must ask for the same next choice.
#pragma once

#include <cstdint>

#include "platform/pmem/model/choices.h"

namespace perdura::explore {

class Strategy : public pmem::Choices {
 public:
  // Begins the next run; false if there is none.
  virtual bool next() = 0;
  // Runs begun so far.
  std::uint64_t runs() const { return runs_; }
  // The share of its runs that the strategy has begun, from 0 to 1, as well as it knows.
  virtual double share() const { return 0; }

 protected:
  std::uint64_t runs_ = 0;
};

}  // namespace perdura::explore
