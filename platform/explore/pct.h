// Probabilistic concurrency testing: random runs that find a bug with a probability that can be
// stated (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic
// Guarantees of Finding Bugs", ASPLOS 2010).
//
// Where the next step is chosen (pmem::Choices::choose_step), each agent has a random priority, and
// of those that may go on the one with the highest does. At d - 1 random places among the k choices
// of a run the agent that would go on gets a priority below all others. A bug that needs d
// conditions on the order of steps is found by a run with a probability of at least
// 1 / (n k^(d-1)), n being the number of agents.
//
// A choice that is not one of steps, such as a delay, takes the first alternative, but another one
// at such a place; then k counts the alternatives besides the first. A bug that needs d - 1 such
// deviations is found with a probability of at least 1 / k^(d-1).
//
// n and k are the greatest that any run so far had, so the first run has no such places.
#pragma once

#include <map>
#include <vector>

#include "platform/explore/strategy.h"

namespace perdura::explore {

class Pct final : public Strategy {
 public:
  // `depth` is d, at least 1.
  Pct(std::uint64_t seed, std::uint32_t depth, std::uint64_t most_runs);

  bool next() override;
  std::size_t choose(std::size_t n) override;
  std::size_t choose_step(std::span<const pmem::NextStep> steps) override;
  double share() const override {
    return static_cast<double>(runs_) / static_cast<double>(most_runs_);
  }

  std::uint64_t agents() const { return agents_; }    // n, at least 1
  std::uint64_t choices() const { return choices_; }  // k
  // The probability that one run finds a bug of the depth, at least.
  double probability() const;

 private:
  std::uint64_t draw(std::uint64_t below);
  void note_size();

  std::uint64_t seed_;
  std::uint32_t depth_;
  std::uint64_t most_runs_;
  pmem::RandomChoices random_;
  std::map<std::uint64_t, std::uint64_t> priorities_;  // of the agents of this run
  // By place, where an agent's priority changes to what; or where a run deviates.
  std::multimap<std::uint64_t, std::uint64_t> changes_;
  std::uint64_t at_ = 0;  // in this run, of the k places
  std::uint64_t agents_ = 1;
  std::uint64_t choices_ = 0;
};

}  // namespace perdura::explore
