// Random runs, each of which a seed repeats: run i has the choices SparseChoices(seed + i, rarity).
#pragma once

#include "platform/strategies/strategy.h"

namespace perdura::strategies {

class Random final : public Strategy {
 public:
  Random(std::uint64_t seed, std::size_t rarity, std::uint64_t most_runs)
      : seed_(seed), rarity_(rarity), most_runs_(most_runs), choices_(seed, rarity) {}

  bool next() override {
    if (runs_ == most_runs_) return false;
    choices_ = pmem::SparseChoices(seed_ + runs_++, rarity_);
    return true;
  }
  std::size_t choose(std::size_t n) override { return choices_.choose(n); }
  double share() const override {
    return static_cast<double>(runs_) / static_cast<double>(most_runs_);
  }
  // The seed of the current run: Random(seed(), rarity, 1) repeats it.
  std::uint64_t seed() const { return seed_ + runs_ - 1; }

 private:
  std::uint64_t seed_;
  std::size_t rarity_;
  std::uint64_t most_runs_;
  pmem::SparseChoices choices_;
};

}  // namespace perdura::strategies
