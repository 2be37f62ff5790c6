#include "services/memory/crash_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "services/memory/cell_judge.h"
#include "services/memory/copy_reads.h"
#include "services/memory/crash_plan.h"

namespace perdura::services {

namespace {

using Operation = MemorySpecification::Operation;

// The reads by the reader of this copy, but for those made while the inspector works: copies are
// late, so nothing can be said of these. The inspector must see everything that this reader has
// seen if the inspected node got it before this copy did. That always holds for the mirror, from
// which a primary that has failed is loaded.
std::vector<ClientCall<Operation>> what_was_read(const MemoryCrashHistory& history, NodeId copy) {
  std::vector<ClientCall<Operation>> reads = history.seen[copy];
  const auto inspection =
      std::find_if(history.calls.begin(), history.calls.end(),
                   [&](const auto& call) { return call.client == history.inspector; });
  if (inspection == history.calls.end()) return reads;
  std::erase_if(reads, [&](const auto& read) { return read.call.end >= inspection->call.start; });
  if (history.inspected <= copy) reads.push_back(*inspection);
  return reads;
}

}  // namespace

CrashVerdict judge_memory(const MemoryCrashHistory& history, std::span<const Time> failures,
                          const CrashLevels& levels) {
  if (history.losses.failed_alone) {
    return judge_cells(history.calls, history.specification.cells, history.inspector, failures,
                       history.problem, levels);
  }
  CrashVerdict verdict = judge_history(history.specification, history.calls, history.inspector,
                                       failures, history.problem, levels);
  const bool is_judged = levels.durable || levels.observed;
  if (!is_judged || !verdict.durable.empty()) return verdict;
  if (history.losses.one_of_several || history.losses.moved) return verdict;
  for (NodeId copy = 1; copy < history.seen.size(); ++copy) {
    const std::string wrong = impossible_read(history.calls, what_was_read(history, copy),
                                              history.threads, kCellsOfThread);
    if (wrong.empty()) continue;
    auto told = history.calls;
    told.insert(told.end(), history.seen[copy].begin(), history.seen[copy].end());
    verdict.durable = verdict.observed =
        HistoryJudge<MemorySpecification>(history.specification, told, history.inspector, failures)
            .trace(fmt::format("{} of node {}", wrong, copy));
    return verdict;
  }
  return verdict;
}

CrashVerdict judge_lagging_copy(const MemoryCrashHistory& history, std::span<const Time> failures,
                                const CrashLevels& levels) {
  if (!levels.any()) return {};
  CrashVerdict verdict =
      judge_history(history.specification, history.calls, history.inspector, failures,
                    history.problem, {.durable = false, .acknowledged = false, .observed = false});
  verdict.durable = verdict.acknowledged = verdict.observed = verdict.ordered;
  return verdict;
}

std::vector<CrashCall> calls_of(const MemoryCrashHistory& history) {
  std::vector<CrashCall> calls;
  for (const ClientCall<Operation>& one : history.calls) {
    const Operation& operation = one.call.operation;
    CrashCall& call = calls.emplace_back();
    call.client = one.client;
    call.start = one.call.start;
    if (one.call.answered) call.end = one.call.end;
    call.changes = MemorySpecification{}.changes(operation);
    call.what = MemorySpecification::what(operation);
    if (one.call.answered) {
      call.told = call.changes ? "done" : fmt::format("{}", fmt::join(operation.found, " "));
    }
    const auto add_value = [&](std::uint64_t version) {
      const auto bytes = std::as_bytes(std::span(&version, 1));
      call.values.push_back({version, {bytes.begin(), bytes.end()}});
    };
    for (const auto& [cell, version] : operation.stored) add_value(version);
    for (const std::uint64_t version : operation.found) add_value(version);
  }
  return calls;
}

}  // namespace perdura::services
