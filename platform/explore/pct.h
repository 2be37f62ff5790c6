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
// deviations is found with a probability of at least 1 / k^(d-1): nothing has a priority that would
// have to be guessed, so there is no n.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "platform/explore/strategy.h"

namespace perdura::explore {

// One run. All that is random comes from `draws`, from alternatives that are equally probable.
class PctRun final : public pmem::Choices {
 public:
  // `depth` is d, at least 1; `choices` is k. Without choices there is no place for a change.
  PctRun(pmem::Choices& draws, std::uint32_t depth, std::uint64_t choices);

  std::size_t choose(std::size_t n) override;
  std::size_t choose_step(std::span<const pmem::NextStep> steps) override;

  // What the run had so far.
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
  std::multimap<std::uint64_t, std::uint64_t> changes_;  // by place: the priority that comes
  std::uint64_t at_ = 0;                                 // of the k places
};

// Runs one after the other. n and k are the greatest that any run so far had, so the first run has
// no changes, and the probability is that of runs behind one that was as long as the bug needs.
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
  // The probability that one run finds a bug of the depth, at least.
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

}  // namespace perdura::explore
