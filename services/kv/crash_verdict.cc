#include "services/kv/crash_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "services/kv/history/checker.h"

namespace perdura::services {

namespace {

using history::History;
using history::Kind;
using history::Operation;
using history::Outcome;

struct Failure {
  Time at;
  std::uint32_t reader;
};

// The operations on a key, or on all keys, before and after the failure.
std::string trace(const History& all, std::optional<std::uint64_t> key, Failure failure,
                  std::string_view conclusion) {
  std::vector<Operation> operations(all.operations().begin(), all.operations().end());
  if (key) std::erase_if(operations, [&](const Operation& other) { return other.key != *key; });
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation& a, const Operation& b) { return a.start < b.start; });
  std::string text;
  bool failed = false;
  const auto fail = [&] {
    if (std::exchange(failed, true)) return;
    text +=
        fmt::format("  ---- the power fails at {:.3f} us; client {} comes after recovery ----\n",
                    to_microseconds(failure.at.time_since_epoch()), failure.reader);
  };
  for (const Operation& operation : operations) {
    if (operation.start > failure.at) fail();
    text += "  ";
    if (!key) text += fmt::format("key {}: ", operation.key);
    text += describe(operation) + "\n";
  }
  fail();
  return text + fmt::format("  => {}\n", conclusion);
}

// Empty if the operations in `judged` are consistent with the promise; otherwise the trace of
// `all`.
std::string broken(const History& judged, const History& all, Failure failure,
                   history::Promise promise) {
  const history::CheckResult verdict = history::check(judged, promise);
  if (verdict.accepted()) return "";
  if (verdict.violations.empty()) return trace(all, std::nullopt, failure, describe(verdict));
  const history::Violation& first = verdict.violations.front();
  return trace(all, first.key, failure, describe(first));
}

// Whether the operation reports the state of its key without changing it.
bool observes(const Operation& operation) {
  return operation.outcome == Outcome::not_found ||
         (operation.kind == Kind::get && operation.outcome == Outcome::ok);
}

// What clients were told of their own writes, and what the reader finds.
History writes_of(const History& all, Failure failure) {
  History writes;
  for (const Operation& operation : all.operations()) {
    const bool before = operation.client != failure.reader;
    if (!before || (operation.kind != Kind::get && !observes(operation))) writes.add(operation);
  }
  writes.add_power_failure(failure.at);
  return writes;
}

// What clients have read, and what the reader finds. A write counts as acknowledged only if it was
// acknowledged before the last read of its key began, since only then can a read have reported it.
History observations_of(const History& all, Failure failure) {
  std::map<std::uint64_t, Time> last_read;  // for each key, when it began
  for (const Operation& operation : all.operations()) {
    if (operation.client == failure.reader || !observes(operation)) continue;
    Time& last = last_read.try_emplace(operation.key, operation.start).first->second;
    last = std::max(last, operation.start);
  }
  History observations;
  for (Operation operation : all.operations()) {
    if (operation.client != failure.reader && !observes(operation)) {
      const auto last = last_read.find(operation.key);
      const bool was_told = last != last_read.end() && operation.end < last->second;
      if (operation.outcome == Outcome::ok && !was_told) operation.outcome = Outcome::unknown;
    }
    observations.add(operation);
  }
  observations.add_power_failure(failure.at);
  return observations;
}

// Checks that what the reader finds first is a state that the key had, and that the store is
// linearizable from there on.
std::string broken_atomicity(const History& history, Failure failure) {
  std::map<std::uint64_t, const Operation*> found;  // for each key, the reader's first get
  History afterwards;
  for (const Operation& operation : history.operations()) {
    if (operation.client != failure.reader) continue;
    afterwards.add(operation);
    if (operation.kind != Kind::get || !found.try_emplace(operation.key, &operation).second) {
      continue;
    }
    if (operation.outcome == Outcome::not_found) continue;
    const bool written =
        operation.outcome == Outcome::ok &&
        std::any_of(history.operations().begin(), history.operations().end(),
                    [&](const Operation& other) {
                      return other.kind == Kind::put && other.key == operation.key &&
                             other.version == operation.version && other.start <= failure.at;
                    });
    if (!written) {
      return trace(history, operation.key, failure,
                   fmt::format("key {}: {}", operation.key,
                               operation.outcome == Outcome::ok
                                   ? "the version that is found is none that it had"
                                   : "it is there, but none of its versions is whole"));
    }
    afterwards.add_preload({operation.key, 1, operation.version});
  }
  return broken(afterwards, afterwards, failure, {});
}

}  // namespace

CrashVerdict judge_crash(const History& history, Time failed_at, std::uint32_t reader,
                         const std::string& problem, const CrashLevels& levels) {
  const Failure failure{failed_at, reader};
  CrashVerdict verdict;
  if (!problem.empty()) {
    verdict.atomic = trace(history, std::nullopt, failure, problem);
    verdict.durable = verdict.acknowledged = verdict.observed = verdict.ordered = verdict.atomic;
    return verdict;
  }
  History with_failure = history;
  with_failure.add_power_failure(failed_at);
  verdict.durable = broken(with_failure, with_failure, failure, {});
  if (verdict.durable.empty()) return verdict;
  if (levels.acknowledged)
    verdict.acknowledged = broken(writes_of(history, failure), with_failure, failure, {});
  if (levels.observed)
    verdict.observed = broken(observations_of(history, failure), with_failure, failure, {});
  if (!levels.ordered && !levels.atomic) return verdict;
  verdict.ordered = broken(with_failure, with_failure, failure,
                           {.undone = history::Promise::Undone::last_version});
  if (verdict.ordered.empty() || !levels.atomic) return verdict;
  verdict.atomic = broken_atomicity(history, failure);
  return verdict;
}

}  // namespace perdura::services
