// Strategies make the choices of many runs of a program, one run after the other. A program asks a
// pmem::Choices wherever it may go either way, and does not know which strategy answers:
//
//   for (Bounded strategy(1); strategy.next();) run(strategy);
//
// The strategy determines which runs there are (all, all with few deviations, random ones); leaving
// out runs that can only end alike is separate (exhaustive.h, sleep_sets.h). A run must be
// deterministic: given the same answers so far, it must ask for the same next choice.
#pragma once

#include <cstdint>

#include "platform/pmem/model/choices.h"

namespace perdura::strategies {

class Strategy : public pmem::Choices {
 public:
  // Begins the next run; returns false if there is none.
  virtual bool next() = 0;
  // Runs begun so far.
  std::uint64_t runs() const { return runs_; }
  // An estimate of the share of its runs that the strategy has begun, from 0 to 1.
  virtual double share() const { return 0; }

 protected:
  std::uint64_t runs_ = 0;
};

}  // namespace perdura::strategies
