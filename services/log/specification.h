// The sequential specification of a log: the records that were appended, in their order.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

#include "services/linearizability.h"

namespace perdura::services {

struct LogSpecification {
  using State = std::vector<std::uint64_t>;  // content of each record
  struct Operation {
    enum class Kind : std::uint8_t { append, read } kind = Kind::append;
    std::uint64_t record = 0;  // append: the content
    std::uint64_t number = 0;  // append: the answer
    State found{};             // read: the answer
  };

  State initial() const { return {}; }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    if (operation.kind == Operation::Kind::read) {
      if (answered && operation.found != state) return {};
      return {state};
    }
    State next = state;
    next.push_back(operation.record);
    if (answered && operation.number != next.size()) return {};
    return {next};
  }
  std::vector<State> after_failure(const State& state) const { return {state}; }

  bool changes(const Operation& operation) const {
    return operation.kind == Operation::Kind::append;
  }
  std::string text(const Call<Operation>& call) const {
    if (!changes(call.operation)) {
      return fmt::format("read of {} records: {}", call.operation.found.size(),
                         fmt::join(call.operation.found, " "));
    }
    if (!call.answered) return fmt::format("append of {}, no answer", call.operation.record);
    return fmt::format("append of {} as number {}", call.operation.record, call.operation.number);
  }
};

}  // namespace perdura::services
