// The sequential specification of replicated memory: cells, each with the version that was stored
// last. A sync point gives several of them new versions at once; a read finds those of all cells.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "services/linearizability.h"

namespace perdura::services {

struct MemorySpecification {
  using State = std::vector<std::uint64_t>;  // by cell
  struct Operation {
    enum class Kind : std::uint8_t { sync, read } kind = Kind::sync;
    std::vector<std::pair<std::size_t, std::uint64_t>> stored{};  // synced cells and versions
    State found{};                                                // what a read found
  };

  std::size_t cells = 0;

  State initial() const { return State(cells); }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    if (operation.kind == Operation::Kind::read) {
      if (answered && operation.found != state) return {};
      return {state};
    }
    State next = state;
    for (const auto& [cell, version] : operation.stored) next.at(cell) = version;
    return {next};
  }
  std::vector<State> after_failure(const State& state) const { return {state}; }

  bool changes(const Operation& operation) const { return operation.kind == Operation::Kind::sync; }
  static std::string what(const Operation& operation) {
    if (operation.kind == Operation::Kind::read) return "read of all cells";
    std::vector<std::string> stored;
    for (const auto& [cell, version] : operation.stored) {
      stored.push_back(fmt::format("version {} of cell {}", version, cell));
    }
    return fmt::format("sync of {}", fmt::join(stored, ", "));
  }
  std::string text(const Call<Operation>& call) const {
    const std::string operation = what(call.operation);
    if (!call.answered) return operation + ", no answer";
    if (changes(call.operation)) return operation;
    return fmt::format("{}: versions {}", operation, fmt::join(call.operation.found, " "));
  }
};

}  // namespace perdura::services
