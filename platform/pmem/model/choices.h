// The source of a model's nondeterministic choices. Depending on the source, the same model gives
// the worst case, the best case, a random case that a seed reproduces, or all cases one after the
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perdura::pmem {

// A step that may be the next one of a program.
struct NextStep {
  // The thread or connection that takes the step. An agent's steps have an order, so at most one of
  // them may be next.
  std::uint64_t agent = 0;
  // The things that the step reads or changes, as a set of bits. Two steps that share none commute.
  std::uint64_t touches = ~std::uint64_t{0};
};

class Choices {
 public:
  virtual ~Choices() = default;
  // Returns a number from 0 to n - 1; n is at least 1. If the alternatives are ordered, 0 stands
  // for the one in which the least survives, n - 1 for the one in which the most does.
  virtual std::size_t choose(std::size_t n) = 0;
  // Like choose(), where the alternatives are steps.
  virtual std::size_t choose_step(std::span<const NextStep> steps) { return choose(steps.size()); }
};

// The worst case: everything that is not guaranteed to survive is lost.
class LeastChoices final : public Choices {
 public:
  std::size_t choose(std::size_t) override { return 0; }
};

// The best case: everything that may survive does.
class MostChoices final : public Choices {
 public:
  std::size_t choose(std::size_t n) override { return n - 1; }
};

// All alternatives are equally probable. The sequence depends only on the seed and is the same on
// every machine.
class RandomChoices final : public Choices {
 public:
  // Sequences of different seeds are unrelated, even if the seeds are close to each other.
  explicit RandomChoices(std::uint64_t seed);
  std::size_t choose(std::size_t n) override;

 private:
  std::uint64_t state_;
};

// Draws one in `rarity` choices at random; the others take the first alternative, so that little
// differs from the default behavior. A rarity of 1 draws all.
class SparseChoices final : public Choices {
 public:
  SparseChoices(std::uint64_t seed, std::size_t rarity) : random_(seed), rarity_(rarity) {}
  std::size_t choose(std::size_t n) override {
    return rarity_ == 1 || random_.choose(rarity_) == 0 ? random_.choose(n) : 0;
  }

 private:
  RandomChoices random_;
  std::size_t rarity_;
};

// Enumerates all sequences of choices, depth first:
//
//   for (Enumerator all; all.next();) run(all);
//
// A run must be deterministic: given the same answers so far, it must ask for the same next choice.
// Otherwise choose() throws PlatformError.
class Enumerator final : public Choices {
 public:
  // Begins the next sequence; returns false if all sequences have been tried.
  bool next();
  std::size_t choose(std::size_t n) override;
  std::uint64_t sequences() const { return sequences_; }  // begun so far
  // True if the previous sequence had the next choice, too.
  bool repeats() const { return depth_ < path_.size(); }

 private:
  struct Choice {
    std::size_t taken;
    std::size_t of;
  };
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::uint64_t sequences_ = 0;
};

}  // namespace perdura::pmem
