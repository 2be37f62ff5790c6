// All runs, depth first. With watch(), a run ends where it reaches a state that an earlier one has
// reached: from there on both could only continue in the same ways. So programs with few states are
// explored completely although they have many runs.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>

#include "platform/strategies/strategy.h"

namespace perdura::strategies {

class Exhaustive final : public Strategy {
 public:
  // Thrown by choose() where a run reaches a known state.
  struct StateIsKnown {};
  // Returns everything that the rest of the run depends on, as bytes.
  using State = std::function<std::string()>;

  bool next() override {
    state_ = nullptr;
    if (!all_.next()) return false;
    ++runs_;
    return true;
  }
  // Sets the state of the current run. Without it the run is not ended early.
  void watch(State state) { state_ = std::move(state); }

  std::size_t choose(std::size_t n) override {
    if (state_ && !all_.repeats() && !known_.insert(state_()).second) throw StateIsKnown();
    return all_.choose(n);
  }
  std::uint64_t states() const { return known_.size(); }  // distinct ones

 private:
  pmem::Enumerator all_;
  std::unordered_set<std::string> known_;
  State state_;
};

}  // namespace perdura::strategies
