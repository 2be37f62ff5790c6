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
// if many operations are concurrent, so it gives up at a limit. It first goes depth-first, which is
// fast if a wrong choice soon leads to a contradiction. If that takes long, a choice far back may
// be the wrong one; then it starts again with limited discrepancy search (Harvey and Ginsberg,
// 1995): orders that differ from the likely one in fewer choices come first. The calls placed so
// far are kept as a position in the order of starts and the few calls beyond it, so a step costs as
// much as there are concurrent calls, however long the history is. If the specification says which
// operations change the object,
//
//     bool changes(const Operation& operation) const;
//
// then one that only observes is placed as soon as its answer is possible, without alternatives:
// it changes nothing for those that are placed later.
//
// If it says which operations have the same effect,
//
//     bool interchangeable(const Operation& a, const Operation& b) const;
//
// then of two such calls without an answer, the one that began first is placed first, since it fits
// wherever the other would. Without this, unanswered writes of the same values would be tried in
// all orders.
//
// Calls without an answer need not take effect. So a configuration is left out if another one has
// the same state after the same answered calls and failures, and has placed some of its unanswered
// calls only: all that can follow the one can also follow the other. Without this, writes that were
// under way and whose effects others have overwritten would double the work, each of them.
//
// It is meant for the histories of explorations and tests. Services whose histories have millions
// of operations need a search of their own, as keys and values have
// (services/kv/history/checker.h), which is tested against this one.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
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

// Called regularly by work that may take long. An exception that it throws ends the work.
using Attend = std::function<void()>;

template <SequentialSpecification S>
class LinearizabilitySearch {
 public:
  using Calls = std::span<const Call<typename S::Operation>>;

  // All arguments must outlive this object. `limit` is the greatest number of configurations to
  // visit.
  LinearizabilitySearch(const S& specification, Calls calls, std::span<const Time> failures,
                        std::size_t limit, const Attend& attend)
      : specification_(specification),
        calls_(calls),
        failures_(failures.begin(), failures.end()),
        limit_(limit),
        attend_(attend) {
    for (std::size_t i = 0; i < calls.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return calls_[a].start < calls_[b].start;
    });
    const auto unanswered = std::stable_partition(
        order_.begin(), order_.end(), [&](std::size_t index) { return calls_[index].answered; });
    answered_ = static_cast<std::size_t>(unanswered - order_.begin());
    find_twins();
    std::sort(failures_.begin(), failures_.end());
  }

  Linearizability run() {
    const Linearizability depth_first = search(std::min(limit_, kMostDepthFirst));
    if (depth_first.decision != Linearizability::Decision::undecided) return depth_first;
    counts_discrepancies_ = true;
    return search(limit_);
  }

 private:
  static constexpr std::size_t kVisitsBetweenAttending = 256;
  static constexpr std::size_t kMostDepthFirst = 1 << 13;

  // The calls that have taken effect, and the number of failures that have passed. Calls are
  // identified by their index in `order_`.
  struct Placed {
    std::size_t before = 0;           // all answered calls before this one
    std::vector<std::size_t> beyond;  // and these, in ascending order
    std::size_t failures = 0;

    bool has(std::size_t index) const {
      return std::binary_search(beyond.begin(), beyond.end(), index);
    }
    bool operator==(const Placed&) const = default;
  };
  struct HashOfPlaced {
    std::size_t operator()(const Placed& placed) const {
      std::size_t hash = placed.before * 31 + placed.failures;
      for (const std::size_t index : placed.beyond) {
        hash = (hash ^ index) * 0x9E3779B97F4A7C15;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };
  struct Configuration {
    Placed placed;
    typename S::State state;
    // A configuration that is the only successor of another need not be remembered, which keeps the
    // memory of long histories small: a repetition is noticed at the next choice.
    bool has_alternatives = true;
    std::size_t discrepancies = 0;  // number of choices that were not the likeliest
  };

  // For each call, the index of the unanswered call that must be placed before it, or its own.
  void find_twins() {
    for (std::size_t i = 0; i < order_.size(); ++i) twins_.push_back(i);
    if constexpr (requires(const typename S::Operation& operation) {
                    { specification_.interchangeable(operation, operation) } -> std::same_as<bool>;
                  }) {
      std::vector<std::size_t> last;  // the latest of each class of interchangeable calls
      for (std::size_t i = answered_; i < order_.size(); ++i) {
        const auto found = std::find_if(last.begin(), last.end(), [&](std::size_t other) {
          return specification_.interchangeable(call(other).operation, call(i).operation);
        });
        if (found == last.end()) {
          last.push_back(i);
        } else {
          twins_[i] = std::exchange(*found, i);
        }
      }
    }
  }

  Linearizability search(std::size_t limit) {
    tried_.clear();
    to_visit_.assign(1, {{{}, specification_.initial()}});
    for (std::size_t visited = 0; std::optional<Configuration> next = take(); ++visited) {
      if (visited == limit) return {Linearizability::Decision::undecided};
      if (attend_ && visited % kVisitsBetweenAttending == 0) attend_();
      if (next->has_alternatives && !is_new(*next)) continue;
      if (next->placed.before == answered_) return {};
      extend(*next);
      keep_new(next->discrepancies);
    }
    return {Linearizability::Decision::violated, refused_};
  }

  // Notes that a configuration is tried, unless all that can follow it can follow one before.
  bool is_new(const Configuration& configuration) {
    Placed answered = configuration.placed;
    const auto first = std::lower_bound(answered.beyond.begin(), answered.beyond.end(), answered_);
    const std::vector<std::size_t> unanswered(first, answered.beyond.end());
    answered.beyond.erase(first, answered.beyond.end());
    auto& tried = tried_[std::move(answered)][configuration.state];
    const auto are_among_them = [&](const std::vector<std::size_t>& fewer) {
      return std::ranges::includes(unanswered, fewer);
    };
    if (std::ranges::any_of(tried, are_among_them)) return false;
    tried.push_back(unanswered);
    return true;
  }

  std::optional<Configuration> take() {
    for (std::vector<Configuration>& some : to_visit_) {
      if (some.empty()) continue;
      Configuration last = std::move(some.back());
      some.pop_back();
      return last;
    }
    return std::nullopt;
  }

  // Queues the new configurations so that the likeliest, which is the last, is visited first.
  void keep_new(std::size_t discrepancies) {
    for (Configuration& one : new_) {
      const bool likeliest = &one == &new_.back();
      if (counts_discrepancies_) one.discrepancies = discrepancies + (likeliest ? 0 : 1);
      if (one.discrepancies >= to_visit_.size()) to_visit_.resize(one.discrepancies + 1);
      to_visit_[one.discrepancies].push_back(std::move(one));
    }
    new_.clear();
  }

  const Call<typename S::Operation>& call(std::size_t index) const { return calls_[order_[index]]; }

  void place(Placed& placed, std::size_t index) const {
    auto& beyond = placed.beyond;
    beyond.insert(std::upper_bound(beyond.begin(), beyond.end(), index), index);
    std::size_t done = 0;
    while (done < beyond.size() && placed.before < answered_ && beyond[done] == placed.before) {
      ++done;
      ++placed.before;
    }
    beyond.erase(beyond.begin(), beyond.begin() + static_cast<std::ptrdiff_t>(done));
  }

  // Returns true if an operation is known to leave every state as it is.
  bool only_observes(const typename S::Operation& operation) const {
    if constexpr (requires {
                    { specification_.changes(operation) } -> std::same_as<bool>;
                  }) {
      return !specification_.changes(operation);
    }
    return false;
  }

  // Adds all successors of a configuration in which answered calls are missing.
  void extend(const Configuration& from) {
    const Placed& placed = from.placed;
    const Time failure =
        placed.failures < failures_.size() ? failures_[placed.failures] : Time::max();
    // The earliest end of the missing answered calls: no call that begins later can be next.
    Time first_end = Time::max();
    std::size_t due = placed.before;
    for (std::size_t i = placed.before; i < answered_ && call(i).start <= first_end; ++i) {
      if (placed.has(i)) continue;
      if (call(i).end < first_end) first_end = call(i).end, due = i;
    }
    note_missing(placed, due);
    candidates_.clear();
    for (const auto& [begin, end] :
         {std::pair(placed.before, answered_), std::pair(answered_, order_.size())}) {
      for (std::size_t i = begin; i < end; ++i) {
        if (call(i).start > first_end || call(i).start > failure) break;
        const bool waits = twins_[i] != i && !placed.has(twins_[i]);
        if (!placed.has(i) && !waits) candidates_.push_back(i);
      }
    }
    for (const std::size_t candidate : candidates_) {
      if (!call(candidate).answered || !only_observes(call(candidate).operation)) continue;
      if (!add(from, candidate)) continue;
      new_.back().has_alternatives = false;
      return;
    }
    if (placed.failures < failures_.size() && first_end >= failure) {
      for (auto& state : specification_.after_failure(from.state)) {
        Configuration next{placed, std::move(state)};
        ++next.placed.failures;
        new_.push_back(std::move(next));
      }
    }
    // The one that is added last is tried first: the call that ended first has probably taken
    // effect first, and an unanswered one probably never.
    std::sort(candidates_.begin(), candidates_.end(), [&](std::size_t a, std::size_t b) {
      const auto late = [&](std::size_t i) {
        return std::pair(!call(i).answered, call(i).answered ? call(i).end : call(i).start);
      };
      return late(a) > late(b);
    });
    for (const std::size_t candidate : candidates_) add(from, candidate);
    if (new_.size() == 1) new_.back().has_alternatives = false;
  }

  // Adds the successors in which a call takes effect next. Returns false if there are none.
  bool add(const Configuration& from, std::size_t candidate) {
    const auto& next_call = call(candidate);
    bool added = false;
    for (auto& state : specification_.after(from.state, next_call.operation, next_call.answered)) {
      // For a call without an answer, having no effect now is the same as not having happened yet.
      if (!next_call.answered && state == from.state) continue;
      Configuration next{from.placed, std::move(state)};
      place(next.placed, candidate);
      new_.push_back(std::move(next));
      added = true;
    }
    return added;
  }

  void note_missing(const Placed& placed, std::size_t due) {
    const auto answered = std::lower_bound(placed.beyond.begin(), placed.beyond.end(), answered_);
    const std::size_t done =
        placed.before + static_cast<std::size_t>(answered - placed.beyond.begin());
    if (done < farthest_) return;
    farthest_ = done;
    refused_ = order_[due];
  }

  const S& specification_;
  Calls calls_;
  std::vector<Time> failures_;
  std::size_t limit_;
  const Attend& attend_;
  std::vector<std::size_t> order_;  // calls: the answered ones, then the others, each by its start
  std::size_t answered_ = 0;        // number of answered calls
  std::vector<std::size_t> twins_;  // find_twins()
  bool counts_discrepancies_ = false;
  std::vector<std::vector<Configuration>> to_visit_;  // by number of discrepancies
  std::vector<Configuration> new_;                    // successors of the configuration being
                                                      // visited
  std::vector<std::size_t> candidates_;
  // For the answered calls and failures that have been placed, and each state after them: the
  // unanswered calls that were placed with them.
  std::unordered_map<Placed, std::map<typename S::State, std::vector<std::vector<std::size_t>>>,
                     HashOfPlaced>
      tried_;
  std::size_t farthest_ = 0;
  std::size_t refused_ = 0;
};

inline constexpr std::size_t kMostConfigurations = 1 << 20;

// A specification with slow operations sets a lower limit.
template <class S>
constexpr std::size_t most_configurations() {
  if constexpr (requires { S::kMostConfigurations; }) return S::kMostConfigurations;
  return kMostConfigurations;
}

// `failures` are the times of power failures, in any order. `attend` is called every few hundred
// configurations; exceptions from it are passed on.
template <SequentialSpecification S>
Linearizability check_linearizability(const S& specification,
                                      std::span<const Call<typename S::Operation>> calls,
                                      std::span<const Time> failures = {},
                                      std::size_t limit = kMostConfigurations,
                                      const Attend& attend = {}) {
  return LinearizabilitySearch<S>(specification, calls, failures, limit, attend).run();
}

// The same object in a system that may lose its last changes: a power failure leaves any of the
// states since the previous failure (buffered durable linearizability of Izraelevitz, Mendes and
// Scott).
template <SequentialSpecification S>
struct Buffered {
  // The states since the last failure; the last one is current.
  using State = std::vector<typename S::State>;
  using Operation = typename S::Operation;
  S specification{};

  State initial() const { return {specification.initial()}; }
  bool changes(const Operation& operation) const requires requires(const S& s) {
    s.changes(operation);
  }
  { return specification.changes(operation); }
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
