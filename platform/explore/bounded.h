// All runs with at most so many deviations, in the order of their number. A deviation is a choice
// other than 0, so 0 must stand for what happens by default: the oldest task, no delay.
// Delay-bounded scheduling (Emmi, Qadeer, Rakamaric, POPL 2011) is this where a deviation delays
// whatever would have been next; most bugs need few delays, and runs of n choices with d deviations
// are about n^d and not 2^n.
//
// Every run within the bound is begun once. Memory: the deviations, and four bytes for each choice,
// of the runs with fewer deviations than the bound.
#pragma once

#include <deque>
#include <vector>

#include "platform/explore/strategy.h"

namespace perdura::explore {

class Bounded final : public Strategy {
 public:
  explicit Bounded(std::uint32_t bound) : bound_(bound) {}

  // Throws PlatformError if the run was not deterministic.
  bool next() override;
  std::size_t choose(std::size_t n) override;
  double share() const override;

  // Of the run that has begun.
  std::size_t deviations() const { return run_.deviations.size(); }
  // Whether the last of them has been made: what follows differs from all runs before.
  bool is_new() const { return asked_ >= run_.first; }

 private:
  struct Deviation {
    std::uint64_t at = 0;  // number of the choice
    std::size_t taken = 0;
  };
  struct Run {
    std::vector<Deviation> deviations;
    std::uint64_t first = 0;                  // number of the first choice behind all deviations
    std::vector<std::uint32_t> alternatives;  // of the choices from there on
  };
  bool extend();

  std::uint32_t bound_;
  Run run_;
  std::uint64_t asked_ = 0;     // choices of this run
  std::size_t made_ = 0;        // deviations of this run
  std::deque<Run> shorter_;     // with fewer deviations, which are still to be extended
  std::size_t at_ = 0;          // where in the front one the next deviation is,
  std::size_t taken_ = 0;       // and which alternative was the last there
  std::uint64_t extended_ = 0;  // of the runs that have as many deviations as the front one
};

}  // namespace perdura::explore
