// The five conditions that a history with failures keeps or breaks, and what follows from them.
//
//   durable       the history with the failure is linearizable: nothing that a completed operation
//                 returned is lost (durable linearizability)
//   acknowledged  the same for writes alone: every write that was acknowledged survives
//   observed      the same for reads alone: a value that a completed get has returned survives, or
//                 a later one does
//   ordered       each key loses at most its last change, acknowledged or not, and has its old or
//                 its new value; what has survived one failure is durable
//                 (history::Promise, last_version)
//   atomic        each key is found in one of the states that it ever had, never as a mix, an
//                 invented value or an error; from then on the store is linearizable and accepts
//                 writes
//
// "durable" includes all the others, and "ordered" includes "atomic"; "acknowledged" and "observed"
// are independent of each other. The level of a system (services/guarantee.h) is the strongest one
// whose conditions all hold. docs/guarantees.md has examples.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "services/guarantee.h"

namespace perdura::services {

enum class Condition : std::uint8_t { durable, acknowledged, observed, ordered, atomic };

inline constexpr std::array kConditions{Condition::durable, Condition::acknowledged,
                                        Condition::observed, Condition::ordered, Condition::atomic};

// One value for each condition.
template <class T>
class PerCondition {
 public:
  constexpr PerCondition() = default;
  constexpr explicit PerCondition(const T& value) { values_.fill(value); }

  constexpr T& operator[](Condition condition) { return values_[index(condition)]; }
  constexpr const T& operator[](Condition condition) const { return values_[index(condition)]; }

 private:
  static constexpr std::size_t index(Condition condition) {
    return static_cast<std::size_t>(condition);
  }
  std::array<T, kConditions.size()> values_{};
};

// The conditions that make up a level, in the order in which a broken one is reported.
inline std::vector<Condition> conditions_of(GuaranteeLevel level) {
  switch (level) {
    case GuaranteeLevel::durable:
      return {Condition::durable};
    case GuaranteeLevel::durable_writes:
      return {Condition::acknowledged, Condition::ordered};
    case GuaranteeLevel::ordered:
      return {Condition::ordered};
    case GuaranteeLevel::atomic:
      return {Condition::atomic};
    case GuaranteeLevel::visible:
    case GuaranteeLevel::none:
      return {};
  }
  return {};
}

// The strongest level all of whose conditions hold. Never "visible": nothing that is found after a
// failure tells it from "none".
template <class Holds>
GuaranteeLevel strongest_level(const Holds& holds) {
  if (holds(Condition::durable)) return GuaranteeLevel::durable;
  if (holds(Condition::ordered)) {
    return holds(Condition::acknowledged) ? GuaranteeLevel::durable_writes
                                          : GuaranteeLevel::ordered;
  }
  return holds(Condition::atomic) ? GuaranteeLevel::atomic : GuaranteeLevel::none;
}

// Why a condition is broken.
struct Loss {
  std::string why;  // empty if it holds; its last line names what is wrong
  // The object that the loss is about, if it is about one of several (CrashCall::object).
  std::optional<std::uint64_t> object{};
  // True if the judge gave up: the condition may hold or not.
  bool undecided = false;
};

// Explorations throw this if their answer depends on a verdict that the judge gave up on.
struct Undecided : std::runtime_error {
  Undecided()
      : std::runtime_error(
            "no guarantee can be told: in one of the histories, too many operations were under way "
            "at the same time to find an order of them; use fewer clients or operations") {}
};

// The result of judging one run.
class Verdict {
 public:
  bool holds(Condition condition) const { return losses_[condition].why.empty(); }
  bool holds_all() const {
    return std::ranges::all_of(kConditions, [this](Condition one) { return holds(one); });
  }
  const std::string& why(Condition condition) const { return losses_[condition].why; }
  const Loss& loss(Condition condition) const { return losses_[condition]; }

  GuaranteeLevel strongest() const {
    return strongest_level([this](Condition condition) { return holds(condition); });
  }
  // Why the run kept less than this level; without a reason if it kept it. Undecided only if no
  // condition of the level is known to be broken.
  Loss loss_of(GuaranteeLevel level) const {
    Loss undecided;
    for (const Condition condition : conditions_of(level)) {
      if (holds(condition)) continue;
      if (!losses_[condition].undecided) return losses_[condition];
      undecided = losses_[condition];
    }
    return undecided;
  }
  // Throws Undecided if the judge gave up on this condition.
  void require_decided(Condition condition) const {
    if (losses_[condition].undecided) throw Undecided();
  }

  void set(Condition condition, Loss loss) { losses_[condition] = std::move(loss); }
  // For runs in which nothing may be lost: the same loss breaks every condition.
  void break_all(const Loss& loss) {
    for (const Condition condition : kConditions) losses_[condition] = loss;
  }
  // Adds the verdict on another one of several independent objects: a condition holds if it holds
  // for all of them. A loss that is known is kept instead of one that is undecided.
  void add(const Verdict& other) {
    for (const Condition condition : kConditions) {
      const bool is_better = losses_[condition].undecided && !other.losses_[condition].undecided &&
                             !other.holds(condition);
      if (holds(condition) || is_better) losses_[condition] = other.losses_[condition];
    }
  }

 private:
  PerCondition<Loss> losses_;
};

// The conditions that a judge has to decide. One that was broken in another run of the same
// exploration need not be judged again.
struct ToJudge {
  static ToJudge all() { return {PerCondition<bool>(true)}; }
  static ToJudge none() { return {}; }

  bool operator[](Condition condition) const { return conditions[condition]; }
  bool any() const { return any_of(kConditions); }
  template <class Conditions = std::initializer_list<Condition>>
  bool any_of(const Conditions& some) const {
    return std::ranges::any_of(some, [this](Condition one) { return conditions[one]; });
  }

  PerCondition<bool> conditions{};
  // To be called now and then while judging takes long. An exception that it throws, such as that
  // of an interrupted program, ends the exploration; judge_history() does so.
  std::function<void()> attend{};
};

}  // namespace perdura::services
