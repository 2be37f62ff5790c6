// An object of the tests: a queue of numbers, its sequential specification and calls of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "services/linearizability.h"

namespace perdura::services::test {

struct Queue {
  struct Operation {
    enum class Kind : std::uint8_t { enqueue, dequeue } kind;
    std::optional<int> value;  // enqueued, or dequeued; nothing: the queue was empty
  };
  using State = std::vector<int>;

  State initial() const { return {}; }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    State next = state;
    if (operation.kind == Operation::Kind::enqueue) {
      next.push_back(*operation.value);
      return {next};
    }
    if (!answered) {
      if (!next.empty()) next.erase(next.begin());
      return {next};
    }
    if (!operation.value) return state.empty() ? std::vector<State>{state} : std::vector<State>{};
    if (state.empty() || state.front() != *operation.value) return {};
    next.erase(next.begin());
    return {next};
  }
  std::vector<State> after_failure(const State& state) const { return {state}; }

  bool changes(const Operation& operation) const {
    return operation.kind == Operation::Kind::enqueue || operation.value;
  }
  std::string text(const Call<Operation>& call) const {
    const std::string value = call.operation.value ? std::to_string(*call.operation.value) : "none";
    const bool adds = call.operation.kind == Operation::Kind::enqueue;
    return (adds ? "enqueue of " : "dequeue of ") + value + (call.answered ? "" : ", no answer");
  }
};
using QueueCall = Call<Queue::Operation>;

inline Time at(int time) { return Time(Picoseconds(time)); }
inline QueueCall enqueue(int value, int start, int end) {
  return {{Queue::Operation::Kind::enqueue, value}, at(start), at(end)};
}
inline QueueCall dequeue(std::optional<int> value, int start, int end) {
  return {{Queue::Operation::Kind::dequeue, value}, at(start), at(end)};
}
inline QueueCall unanswered(QueueCall call) {
  call.answered = false;
  return call;
}

}  // namespace perdura::services::test
