// Which tape to run next: one that is drawn from a fresh seed, or a variation of a tape that has
// reached a state of the system which no tape before had reached (services/system_state.h). The
// same seed and the same answers give the same tapes.
//
//   TapeSearch search(seed);
//   for (...) {
//     pmem::Tape tape = search.next();
//     ... run with the tape ...
//     search.learn(tape.drawn(), states);
//   }
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "platform/pmem/model/tape.h"

namespace perdura::explore {

class TapeSearch {
 public:
  // One of this many tapes is drawn anew, as long as there is anything to vary.
  static constexpr std::size_t kOneFreshOf = 4;

  // `varies`: false draws every tape anew.
  explicit TapeSearch(std::uint64_t seed, bool varies = true) : random_(seed), varies_(varies) {}

  pmem::Tape next();
  // Tells the search what the last run has drawn, and which states it has reached.
  void learn(const pmem::Tape::Streams& drawn, const std::unordered_set<std::uint64_t>& states);

  std::uint64_t fresh() const { return fresh_; }
  std::uint64_t varied() const { return varied_; }
  // How many different states were reached.
  std::uint64_t states() const { return states_.size(); }

 private:
  // A tape that has reached states first.
  struct Kept {
    pmem::Tape::Streams tape;
    std::size_t choices = 0;
    std::vector<std::uint64_t> reached{};
    std::uint64_t varied = 0;  // how often
  };

  const pmem::Tape::Streams& any_kept() { return kept_[random_.choose(kept_.size())].tape; }
  Kept& most_promising();
  pmem::Tape::Streams::iterator any_stream(pmem::Tape::Streams& tape);
  void vary(pmem::Tape::Streams& tape);
  void vary_values(std::vector<std::uint64_t>& values);
  void take_from(const pmem::Tape::Streams& other, const std::string& name,
                 std::vector<std::uint64_t>& values);
  std::size_t place_in(const std::vector<std::uint64_t>& values) {
    return random_.choose(values.size());
  }

  pmem::RandomChoices random_;
  bool varies_;
  std::unordered_map<std::uint64_t, std::uint64_t> states_;  // how many runs have reached each
  std::vector<Kept> kept_;
  std::size_t choices_kept_ = 0;
  std::uint64_t fresh_ = 0;
  std::uint64_t varied_ = 0;
};

}  // namespace perdura::explore
