// Probabilistic concurrency testing: random runs that find a bug with a probability that can be
// stated (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic
// Guarantees of Finding Bugs", ASPLOS 2010).
//
// Where the next step is chosen (pmem::Choices::choose_step), each agent has a random priority, and
// the ready agent with the highest one is taken. At d - 1 random places among the k choices of a
// run the agent that would be taken gets a priority below all others. A run finds a bug that needs
// d conditions on the order of steps with a probability of at least 1 / (n k^(d-1)), where n is the
// number of agents.
//
// At a choice that is not one of steps, such as a delay, the first alternative is taken, but
// another one at such a random place; then k counts the alternatives besides the first. A run finds
// a bug that needs d - 1 such deviations with a probability of at least 1 / k^(d-1): there are no
// priorities to guess, so n does not occur.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "platform/strategies/strategy.h"

namespace perdura::strategies {

// One run. All randomness comes from `draws`, as choices among equally probable alternatives.
class PctRun final : public pmem::Choices {
 public:
  // `depth` is d, at least 1; `choices` is k. Without choices there is no place for a change.
  PctRun(pmem::Choices& draws, std::uint32_t depth, std::uint64_t choices);

  std::size_t choose(std::size_t n) override;
  std::size_t choose_step(std::span<const pmem::NextStep> steps) override;

  // The size of the run so far.
  std::uint64_t agents() const { return ranked_.size(); }
  std::uint64_t choices() const { return at_; }

 private:
  struct Priority {
    bool lowered;
    std::uint64_t value;
    bool operator<(const Priority& other) const {
      return lowered != other.lowered ? lowered : value < other.value;
    }
  };
  void rank(std::uint64_t agent);
  Priority priority_of(std::uint64_t agent) const;

  pmem::Choices& draws_;
  std::vector<std::uint64_t> ranked_;               // agents by their first priority, lowest first
  std::map<std::uint64_t, std::uint64_t> lowered_;  // agents whose priority has changed
  std::multimap<std::uint64_t, std::uint64_t> changes_;  // by place: the new priority
  std::uint64_t at_ = 0;                                 // the current one of the k places
};

// Several runs, one after the other. n and k are the greatest values of all runs so far, so the
// first run has no changes, and the probability applies once a run was as long as the bug needs.
class Pct final : public Strategy {
 public:
  Pct(std::uint64_t seed, std::uint32_t depth, std::uint64_t most_runs);
  Pct(const Pct&) = delete;
  Pct& operator=(const Pct&) = delete;

  bool next() override;
  std::size_t choose(std::size_t n) override { return run_->choose(n); }
  std::size_t choose_step(std::span<const pmem::NextStep> steps) override {
    return run_->choose_step(steps);
  }
  double share() const override {
    return static_cast<double>(runs_) / static_cast<double>(most_runs_);
  }

  std::uint64_t agents() const { return agents_; }    // n; 0 if no steps were chosen
  std::uint64_t choices() const { return choices_; }  // k
  // A lower bound of the probability that one run finds a bug of the depth.
  double probability() const;

 private:
  void note_size();

  std::uint64_t seed_;
  std::uint32_t depth_;
  std::uint64_t most_runs_;
  pmem::RandomChoices random_;
  std::optional<PctRun> run_;
  std::uint64_t agents_ = 0;
  std::uint64_t choices_ = 0;
};

}  // namespace perdura::strategies
