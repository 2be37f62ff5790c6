// All runs with at most a given number of deviations, those with the fewest first. A deviation is a
// choice other than 0, so 0 must stand for the default: the oldest task, no delay. This is
// delay-bounded scheduling (Emmi, Qadeer, Rakamaric, POPL 2011) where a deviation delays what would
// otherwise be next; most bugs need few delays, and there are about n^d runs of n choices with d
// deviations rather than 2^n.
//
// Every run within the bound is begun once. Memory: the deviations, and four bytes for each choice,
// of the runs with fewer deviations than the bound.
#pragma once

#include <deque>
#include <vector>

#include "platform/strategies/strategy.h"

namespace perdura::strategies {

class Bounded final : public Strategy {
 public:
  explicit Bounded(std::uint32_t bound) : bound_(bound) {}

  // Throws PlatformError if the run was not deterministic.
  bool next() override;
  std::size_t choose(std::size_t n) override;
  double share() const override;

  // The number of deviations of the current run.
  std::size_t deviations() const { return run_.deviations.size(); }
  // True once the last of them has been made: from then on the run differs from all earlier ones.
  bool is_new() const { return asked_ >= run_.first; }

 private:
  struct Deviation {
    std::uint64_t at = 0;  // number of the choice
    std::size_t taken = 0;
  };
  struct Run {
    std::vector<Deviation> deviations;
    std::uint64_t first = 0;                  // number of the first choice after all deviations
    std::vector<std::uint32_t> alternatives;  // how many each choice from there on has
  };
  bool extend();

  std::uint32_t bound_;
  Run run_;
  std::uint64_t asked_ = 0;     // choices of this run
  std::size_t made_ = 0;        // deviations made in this run so far
  std::deque<Run> shorter_;     // runs with fewer deviations, not fully extended yet
  std::size_t at_ = 0;          // the choice at which the front run is being extended,
  std::size_t taken_ = 0;       // and the alternative taken there last
  std::uint64_t extended_ = 0;  // among the runs with as many deviations as the front one
};

}  // namespace perdura::strategies
