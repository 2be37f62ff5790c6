// The definition itself: tries every order of one key's operations. For a dozen operations at most.
#pragma once

#include <algorithm>
#include <set>
#include <tuple>

#include "harness/history/checker.h"

namespace perdura::history::test {

class Exhaustive {
 public:
  Exhaustive(const History& history, Promise promise)
      : operations_(history.operations().begin(), history.operations().end()) {
    if (promise.undone == Promise::Undone::last_version) {
      failures_.assign(history.power_failures().begin(), history.power_failures().end());
      std::sort(failures_.begin(), failures_.end());
    }
    for (const History::Preload& preload : history.preloads()) {
      initial_ = static_cast<std::int64_t>(preload.version);
    }
  }

  bool accepts() {
    State state;
    state.content = state.previous = initial_;
    return can_end(state);
  }

 private:
  static constexpr std::int64_t kAbsent = -1;
  struct State {
    std::uint32_t placed = 0;
    std::size_t failures = 0;
    std::int64_t content = kAbsent;
    std::int64_t previous = kAbsent;
    bool exposed = false;
    auto operator<=>(const State&) const = default;
  };

  bool required(const Operation& operation) const {
    return operation.outcome == Outcome::ok || operation.outcome == Outcome::not_found;
  }
  bool is_placed(const State& state, std::size_t index) const {
    return (state.placed >> index & 1) != 0;
  }
  // Whether an operation that must come before the moment is still missing.
  bool one_missing_before(const State& state, Time when) const {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (required(operations_[i]) && !is_placed(state, i) && operations_[i].end < when) {
        return true;
      }
    }
    return false;
  }

  bool can_end(State state) {
    if (!seen_.insert(state).second) return false;
    bool all = true;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      all = all && (is_placed(state, i) || !required(operations_[i]));
    }
    if (all) return true;
    return fails(state) || proceeds(state);
  }

  bool fails(const State& state) {
    if (state.failures == failures_.size()) return false;
    if (one_missing_before(state, failures_[state.failures])) return false;
    State next = state;
    ++next.failures;
    next.exposed = false;
    next.previous = kAbsent;
    if (can_end(next)) return true;
    next.content = state.previous;
    return state.exposed && can_end(next);
  }

  bool proceeds(const State& state) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const Operation& operation = operations_[i];
      const bool counts = required(operation) || operation.outcome == Outcome::unknown;
      if (!counts || is_placed(state, i) || one_missing_before(state, operation.start)) continue;
      if (state.failures < failures_.size() && operation.start > failures_[state.failures])
        continue;
      State next = state;
      next.placed |= std::uint32_t{1} << i;
      if (applies(operation, next) && can_end(next)) return true;
    }
    return false;
  }

  static bool applies(const Operation& operation, State& state) {
    if (operation.outcome == Outcome::not_found) return state.content == kAbsent;
    if (operation.kind == Kind::get) {
      return operation.outcome == Outcome::unknown ||
             state.content == static_cast<std::int64_t>(operation.version);
    }
    if (operation.kind == Kind::erase && state.content == kAbsent) return false;
    state.previous = state.content;
    state.content =
        operation.kind == Kind::erase ? kAbsent : static_cast<std::int64_t>(operation.version);
    state.exposed = true;
    return true;
  }

  std::vector<Operation> operations_;
  std::vector<Time> failures_;
  std::int64_t initial_ = kAbsent;
  std::set<State> seen_;
};

}  // namespace perdura::history::test
