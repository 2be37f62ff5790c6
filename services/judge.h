// Judges which guarantees a history with a power failure kept, for any service that has a
// sequential specification (services/linearizability.h). The specification must also tell which
// operations are changes, and describe calls:
//
//   struct Queue {
//     ...
//     bool changes(const Operation& operation) const;       // or does it only observe?
//     std::string text(const Call<Operation>& call) const;  // "dequeue of 7";
//                                                           // "enqueue of 7, no answer"
//   };
//
//   return judge_history(Queue{}, calls, kInspector, failures, problem());
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "services/crash.h"
#include "services/linearizability.h"

namespace perdura::services {

template <class Operation>
struct ClientCall {
  Call<Operation> call;
  std::uint32_t client = 0;
};

template <SequentialSpecification S>
class HistoryJudge {
 public:
  using Calls = std::vector<ClientCall<typename S::Operation>>;

  // `failures` are the times of the failures, in order. `inspector` is the number of the client
  // that began after the last one. All arguments must outlive this object.
  HistoryJudge(const S& specification, const Calls& calls, std::uint32_t inspector,
               std::span<const Time> failures)
      : specification_(specification), calls_(calls), inspector_(inspector), failures_(failures) {}

  Verdict judge(const ToJudge& judged) {
    attend_ = judged.attend;
    Verdict verdict;
    // A durable history keeps every condition. Finding that it is not durable takes long, and need
    // not be repeated.
    if (judged.any_of({Condition::durable, Condition::acknowledged, Condition::observed})) {
      verdict.set(Condition::durable, broken(specification_, calls_));
      if (verdict.holds(Condition::durable)) return verdict;
    }
    if (judged[Condition::acknowledged]) {
      verdict.set(Condition::acknowledged, broken(specification_, changes_alone()));
    }
    const bool judges_order = judged.any_of({Condition::ordered, Condition::atomic});
    if (judges_order) {
      verdict.set(Condition::ordered, broken(Buffered<S>{specification_}, calls_));
    }
    // If nobody has read anything, what is left of an ordered history contradicts nobody. A search
    // would try each change with and without an effect.
    const bool is_ordered = judges_order && verdict.holds(Condition::ordered);
    if (judged[Condition::observed] && (!is_ordered || was_told())) {
      verdict.set(Condition::observed, broken(specification_, what_was_told()));
    }
    if (!judges_order || is_ordered || !judged[Condition::atomic]) return verdict;
    verdict.set(Condition::atomic, broken(specification_, what_is_possible()));
    return verdict;
  }

  // The history as text, with the conclusion.
  std::string trace(const std::string& conclusion) const {
    Calls ordered = calls_;
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& a, const auto& b) { return a.call.start < b.call.start; });
    std::string text;
    std::size_t failed = 0;
    const auto fail_before = [&](Time when) {
      for (; failed < failures_.size() && when > failures_[failed]; ++failed) {
        const bool last = failed + 1 == failures_.size();
        text +=
            fmt::format("  ---- the server fails at {:.3f} us{} ----\n",
                        to_microseconds(failures_[failed].time_since_epoch()),
                        last ? fmt::format("; client {} comes after recovery", inspector_) : "");
      }
    };
    for (const auto& call : ordered) {
      fail_before(call.call.start);
      text += fmt::format("  {} by client {}, from {:.3f} us", specification_.text(call.call),
                          call.client, to_microseconds(call.call.start.time_since_epoch()));
      if (call.call.answered) {
        text += fmt::format(" to {:.3f} us", to_microseconds(call.call.end.time_since_epoch()));
      }
      text += "\n";
    }
    fail_before(Time::max());
    return text + fmt::format("  => {}\n", conclusion);
  }

 private:
  bool before(const ClientCall<typename S::Operation>& call) const {
    return call.client != inspector_;
  }
  bool changes(const ClientCall<typename S::Operation>& call) const {
    return specification_.changes(call.call.operation);
  }

  // The answers to clients' changes, and the state that the inspector finds.
  Calls changes_alone() const {
    Calls some = calls_;
    std::erase_if(some, [&](const auto& call) { return before(call) && !changes(call); });
    return some;
  }
  // True if a client's read was answered before the inspector began.
  bool was_told() const {
    return std::any_of(calls_.begin(), calls_.end(), [&](const auto& call) {
      return before(call) && !changes(call) && call.call.answered;
    });
  }
  // The answers to clients' reads, and the state that the inspector finds. A change counts as
  // acknowledged only if it was acknowledged before the last read began, since only then can a read
  // have reported it.
  Calls what_was_told() const {
    Time last_read = Time::min();
    for (const auto& call : calls_) {
      if (before(call) && !changes(call) && call.call.answered) {
        last_read = std::max(last_read, call.call.start);
      }
    }
    Calls some = calls_;
    for (auto& call : some) {
      if (before(call) && changes(call) && call.call.end >= last_read) call.call.answered = false;
    }
    return some;
  }
  // All changes, each of which may or may not have taken effect, in any order that their times
  // allow.
  Calls what_is_possible() const {
    Calls some = changes_alone();
    for (auto& call : some) {
      if (before(call)) call.call.answered = false;
    }
    return some;
  }

  template <class Judged>
  Loss broken(const Judged& judged, const Calls& some) const {
    std::vector<Call<typename S::Operation>> calls;
    for (const auto& call : some) calls.push_back(call.call);
    const Linearizability result = check_linearizability(
        judged, std::span(std::as_const(calls)), failures_, most_configurations<S>(), attend_);
    if (result.accepted()) return {};
    if (result.decision == Linearizability::Decision::undecided) {
      return {.why = trace("not decided: too many operations at the same time"), .undecided = true};
    }
    return {trace(fmt::format("impossible: {}", specification_.text(calls[result.refused])))};
  }

  const S& specification_;
  const Calls& calls_;
  std::uint32_t inspector_;
  std::span<const Time> failures_;
  Attend attend_{};
};

// Returns the verdict of HistoryJudge. If the scenario noted a problem, that counts as the loss of
// everything instead. Without a failure a problem breaks all conditions.
template <SequentialSpecification S>
Verdict judge_history(const S& specification,
                      const std::vector<ClientCall<typename S::Operation>>& calls,
                      std::uint32_t inspector, std::span<const Time> failures,
                      const std::string& problem, const ToJudge& judged = ToJudge::all()) {
  Verdict verdict;
  if (!problem.empty()) {
    verdict.break_all({problem});
    return verdict;
  }
  verdict = HistoryJudge<S>(specification, calls, inspector, failures).judge(judged);
  if (failures.empty() && !verdict.holds(Condition::durable)) {
    verdict.break_all(verdict.loss(Condition::durable));
  }
  return verdict;
}

}  // namespace perdura::services
