#include "services/memory/crash_verdict.h"

#include <fmt/format.h>

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

Verdict judge_memory(const MemoryCrashHistory& history, std::span<const Time> failures,
                     const ToJudge& judged) {
  if (history.losses.failed_alone) {
    return judge_cells(history.calls, history.specification.cells, history.inspector, failures,
                       history.problem, judged);
  }
  Verdict verdict = judge_history(history.specification, history.calls, history.inspector, failures,
                                  history.problem, judged);
  const bool is_judged = judged.any_of({Condition::durable, Condition::observed});
  if (!is_judged || !verdict.holds(Condition::durable)) return verdict;
  if (history.losses.one_of_several || history.losses.moved) return verdict;
  for (NodeId copy = 1; copy < history.seen.size(); ++copy) {
    const std::string wrong = impossible_read(history.calls, what_was_read(history, copy),
                                              history.threads, kCellsOfThread);
    if (wrong.empty()) continue;
    auto told = history.calls;
    told.insert(told.end(), history.seen[copy].begin(), history.seen[copy].end());
    const Loss loss{
        HistoryJudge<MemorySpecification>(history.specification, told, history.inspector, failures)
            .trace(fmt::format("{} of node {}", wrong, copy))};
    verdict.set(Condition::durable, loss);
    verdict.set(Condition::observed, loss);
    if (failures.empty()) verdict.break_all(loss);
    return verdict;
  }
  return verdict;
}

Verdict judge_lagging_copy(const MemoryCrashHistory& history, std::span<const Time> failures,
                           const ToJudge& judged) {
  if (!judged.any()) return {};
  ToJudge of_copy = ToJudge::none();
  of_copy.conditions[Condition::ordered] = of_copy.conditions[Condition::atomic] = true;
  of_copy.attend = judged.attend;
  Verdict verdict = judge_history(history.specification, history.calls, history.inspector, failures,
                                  history.problem, of_copy);
  // The copy may lack the last changes, and nothing else: it must keep more than other systems.
  for (const Condition condition :
       {Condition::durable, Condition::acknowledged, Condition::observed}) {
    verdict.set(condition, verdict.loss(Condition::ordered));
  }
  return verdict;
}

}  // namespace perdura::services
