#include "services/memory/cell_judge.h"

#include <utility>

namespace perdura::services {

namespace {

using Calls = std::vector<ClientCall<MemorySpecification::Operation>>;

Calls calls_of(std::span<const Calls::value_type> calls, std::size_t cell) {
  Calls of_cell;
  bool may_be_torn = false;
  for (ClientCall<MemorySpecification::Operation> one : calls) {
    MemorySpecification::Operation& operation = one.call.operation;
    if (operation.kind == MemorySpecification::Operation::Kind::read) {
      if (operation.found.at(cell) == kTornCell && may_be_torn) continue;
      operation.found = {operation.found.at(cell)};
    } else {
      std::erase_if(operation.stored, [&](const auto& stored) { return stored.first != cell; });
      if (operation.stored.empty()) continue;
      operation.stored.front().first = 0;
      may_be_torn = may_be_torn || !one.call.answered;
    }
    of_cell.push_back(std::move(one));
  }
  return of_cell;
}

}  // namespace

Verdict judge_cells(std::span<const Calls::value_type> calls, std::size_t cells,
                    std::uint32_t inspector, std::span<const Time> failures,
                    const std::string& problem, const ToJudge& judged) {
  Verdict all;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const Calls of_cell = calls_of(calls, cell);
    all.add(judge_history(MemorySpecification{1}, of_cell, inspector, failures, problem, judged));
  }
  return all;
}

}  // namespace perdura::services
