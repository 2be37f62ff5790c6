// Decides whether a history is linearizable (Herlihy and Wing 1990), that is, whether an object
// that executes its operations one at a time could have produced it. Works for any object that has
// a sequential specification, which says what the object may answer in each state, and what its
// state is afterwards. A service provides a specification for each kind of its objects.
//
//   struct Counter {                // increments, and returns the new value
//     using State = int;
//     struct Operation { int answer; };
//     State initial() const { return 0; }
//     // The possible states after this operation; none if the answer is impossible. An operation
//     // without an answer may have had any effect that it can have.
//     std::vector<State> after(const State& state, const Operation& count, bool answered) const {
//       if (answered && count.answer != state + 1) return {};
//       return {state + 1};
//     }
//     // The possible states after a power failure; a durable object stays as it is.
//     std::vector<State> after_failure(const State& state) const { return {state}; }
//   };
//
// The search is that of Wing and Gong (1993), which tries the orders that the times allow, with
// Lowe's (2017) memoization of visited configurations. It is exact, but may take exponential time
// if many operations are concurrent, so it gives up at a limit. It is meant for the histories of
// explorations and tests. Services whose histories have millions of operations need a search of
// their own, as keys and values have (services/kv/history/checker.h), which is tested against this
// one.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "platform/base/units.h"

namespace perdura::services {

template <class S>
concept SequentialSpecification = std::totally_ordered<typename S::State> &&
    requires(const S& specification, const typename S::State& state,
             const typename S::Operation& operation) {
  { specification.initial() } -> std::same_as<typename S::State>;
  { specification.after(state, operation, true) } -> std::same_as<std::vector<typename S::State>>;
  { specification.after_failure(state) } -> std::same_as<std::vector<typename S::State>>;
};

// An operation of a client, and its interval. All times are of one clock; operations with equal
// times count as concurrent.
template <class Operation>
struct Call {
  Operation operation;
  Time start{};
  Time end = Time::max();  // ignored if there was no answer
  // Without an answer the operation may have taken effect at any time after its start, or never.
  bool answered = true;
};

struct Linearizability {
  enum class Decision : std::uint8_t { linearizable, violated, undecided };
  Decision decision = Decision::linearizable;
  // If the history is violated: a call that cannot follow any of the longest valid orders of the
  // others.
  std::size_t refused = 0;

  bool accepted() const { return decision == Decision::linearizable; }
};

template <SequentialSpecification S>
class LinearizabilitySearch {
 public:
  using Calls = std::span<const Call<typename S::Operation>>;

  // All arguments must outlive this object. `limit` is the greatest number of configurations to
  // visit.
  LinearizabilitySearch(const S& specification, Calls calls, std::span<const Time> failures,
                        std::size_t limit)
      : specification_(specification),
        calls_(calls),
        failures_(failures.begin(), failures.end()),
        limit_(limit) {
    for (std::size_t i = 0; i < calls.size(); ++i) by_start_.push_back(i);
    std::stable_sort(by_start_.begin(), by_start_.end(), [&](std::size_t a, std::size_t b) {
      return calls_[a].start < calls_[b].start;
    });
    std::sort(failures_.begin(), failures_.end());
  }

  Linearizability run() {
    to_visit_.push_back({std::vector<bool>(calls_.size()), 0, 0, specification_.initial()});
    while (!to_visit_.empty()) {
      Configuration next = std::move(to_visit_.back());
      to_visit_.pop_back();
      if (tried_.size() == limit_) return {Linearizability::Decision::undecided};
      if (!tried_.insert(next).second) continue;
      if (!extend(next)) return {};
    }
    return {Linearizability::Decision::violated, refused_};
  }

 private:
  // Which calls have taken effect, how many failures have passed, and the resulting state.
  struct Configuration {
    std::vector<bool> placed;
    std::size_t answered = 0;  // number of placed calls that were answered
    std::size_t failures = 0;
    typename S::State state;
    friend bool operator<(const Configuration& a, const Configuration& b) {
      if (a.failures != b.failures) return a.failures < b.failures;
      if (a.placed != b.placed) return a.placed < b.placed;
      return a.state < b.state;
    }
  };

  // Adds all successors of a configuration. False if all answered calls have been placed.
  bool extend(const Configuration& from) {
    const Time failure = from.failures < failures_.size() ? failures_[from.failures] : Time::max();
    // Earliest end of the missing answered calls: nothing may begin later.
    Time first_end = Time::max();
    std::size_t due = 0;
    bool complete = true;
    for (const std::size_t index : by_start_) {
      const auto& call = calls_[index];
      if (from.placed[index] || !call.answered) continue;
      complete = false;
      if (call.start > first_end) break;
      if (call.end < first_end) first_end = call.end, due = index;
    }
    if (complete) return false;
    if (from.answered >= farthest_) {
      farthest_ = from.answered;
      refused_ = due;
    }
    if (from.failures < failures_.size() && first_end >= failure) {
      for (auto& state : specification_.after_failure(from.state)) {
        Configuration next = from;
        ++next.failures;
        next.state = std::move(state);
        to_visit_.push_back(std::move(next));
      }
    }
    for (const std::size_t index : by_start_) {
      const auto& call = calls_[index];
      if (call.start > first_end || call.start > failure) break;
      if (from.placed[index]) continue;
      for (auto& state : specification_.after(from.state, call.operation, call.answered)) {
        Configuration next = from;
        next.placed[index] = true;
        next.answered += call.answered ? 1 : 0;
        next.state = std::move(state);
        to_visit_.push_back(std::move(next));
      }
    }
    return true;
  }

  const S& specification_;
  Calls calls_;
  std::vector<Time> failures_;
  std::size_t limit_;
  std::vector<std::size_t> by_start_;
  std::vector<Configuration> to_visit_;
  std::set<Configuration> tried_;
  std::size_t farthest_ = 0;
  std::size_t refused_ = 0;
};

inline constexpr std::size_t kMostConfigurations = 1 << 20;

// `failures` are the times of power failures, in any order.
template <SequentialSpecification S>
Linearizability check_linearizability(const S& specification,
                                      std::span<const Call<typename S::Operation>> calls,
                                      std::span<const Time> failures = {},
                                      std::size_t limit = kMostConfigurations) {
  return LinearizabilitySearch<S>(specification, calls, failures, limit).run();
}

// The same object in a system that may lose its last changes: a power failure leaves any of the
// states since the previous failure (buffered durable linearizability of Izraelevitz, Mendes and
// Scott).
template <SequentialSpecification S>
struct Buffered {
  using State = std::vector<typename S::State>;  // since the last failure; the last one is current
  using Operation = typename S::Operation;
  S specification{};

  State initial() const { return {specification.initial()}; }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    std::vector<State> next;
    for (auto& one : specification.after(state.back(), operation, answered)) {
      next.push_back(state);
      if (one != state.back()) next.back().push_back(std::move(one));
    }
    return next;
  }
  std::vector<State> after_failure(const State& state) const {
    std::vector<State> left;
    for (const auto& one : state) left.push_back({one});
    return left;
  }
};

}  // namespace perdura::services
