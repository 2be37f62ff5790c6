// A source of choices: whatever a model may decide either way, it asks for here. So the same model
// gives the worst case, the best case, a random one that a seed replays, or, one after the other,
// all cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perdura::pmem {

class Choices {
 public:
  virtual ~Choices() = default;
  // One of 0 to n - 1, n at least 1. Where alternatives are ordered, 0 keeps least and n - 1 most.
  virtual std::size_t choose(std::size_t n) = 0;
};

// Everything that is not guaranteed is lost.
class LeastChoices final : public Choices {
 public:
  std::size_t choose(std::size_t) override { return 0; }
};

// Everything that may be kept is kept.
class MostChoices final : public Choices {
 public:
  std::size_t choose(std::size_t n) override { return n - 1; }
};

// Each alternative is as probable as the others; the same on every machine.
class RandomChoices final : public Choices {
 public:
  // Seeds that are close to each other give sequences that have nothing in common.
  explicit RandomChoices(std::uint64_t seed);
  std::size_t choose(std::size_t n) override;

 private:
  std::uint64_t state_;
};

// All sequences of choices, depth first:
//
//   for (Enumerator all; all.next();) run(all);
//
// A run must ask for the same choices as long as it is given the same answers; if it does not,
// choose() throws PlatformError.
class Enumerator final : public Choices {
 public:
  // Begins the next sequence; false if all have been tried.
  bool next();
  std::size_t choose(std::size_t n) override;
  std::uint64_t sequences() const { return sequences_; }  // begun so far

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
