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

struct Failures {
  std::span<const Time> at;
  std::uint32_t reader;
};

void add_failures(History& history, Failures failures) {
  for (const Time at : failures.at) history.add_power_failure(at);
}

// Lists the operations on a key, or on all keys, before and after the failures.
std::string trace(const History& all, std::optional<std::uint64_t> key, Failures failures,
                  std::string_view conclusion) {
  std::vector<Operation> operations(all.operations().begin(), all.operations().end());
  if (key) std::erase_if(operations, [&](const Operation& other) { return other.key != *key; });
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation& a, const Operation& b) { return a.start < b.start; });
  std::string text;
  std::size_t failed = 0;
  const auto fail_before = [&](Time when) {
    for (; failed < failures.at.size() && when > failures.at[failed]; ++failed) {
      const bool last = failed + 1 == failures.at.size();
      text +=
          fmt::format("  ---- the server fails at {:.3f} us{} ----\n",
                      to_microseconds(failures.at[failed].time_since_epoch()),
                      last ? fmt::format("; client {} comes after recovery", failures.reader) : "");
    }
  };
  for (const Operation& operation : operations) {
    fail_before(operation.start);
    text += "  ";
    if (!key) text += fmt::format("key {}: ", operation.key);
    text += describe(operation) + "\n";
  }
  fail_before(Time::max());
  return text + fmt::format("  => {}\n", conclusion);
}

// Returns no loss if the operations in `judged` are consistent with the promise; otherwise the trace
// of `all`, and the key that it is about.
Loss broken(const History& judged, const History& all, Failures failures,
            history::Promise promise) {
  const history::CheckResult result = history::check(judged, promise);
  if (result.accepted()) return {};
  if (result.violations.empty()) {
    return {.why = trace(all, std::nullopt, failures, describe(result)), .undecided = true};
  }
  const history::Violation& first = result.violations.front();
  return {trace(all, first.key, failures, describe(first)), first.key};
}

// True if the operation reports the state of its key without changing it.
bool observes(const Operation& operation) {
  return operation.outcome == Outcome::not_found ||
         (operation.kind == Kind::get && operation.outcome == Outcome::ok);
}

// The clients' own writes with their answers, and everything that the reader finds.
History writes_of(const History& all, Failures failures) {
  History writes;
  for (const Operation& operation : all.operations()) {
    const bool before = operation.client != failures.reader;
    if (!before || (operation.kind != Kind::get && !observes(operation))) writes.add(operation);
  }
  add_failures(writes, failures);
  return writes;
}

// The clients' reads, and everything that the reader finds. A write counts as acknowledged only if
// it was acknowledged before the last read of its key began, since only then can a read have
// reported it.
History observations_of(const History& all, Failures failures) {
  std::map<std::uint64_t, Time> last_read;  // for each key, when it began
  for (const Operation& operation : all.operations()) {
    if (operation.client == failures.reader || !observes(operation)) continue;
    Time& last = last_read.try_emplace(operation.key, operation.start).first->second;
    last = std::max(last, operation.start);
  }
  History observations;
  for (Operation operation : all.operations()) {
    if (operation.client != failures.reader && !observes(operation)) {
      const auto last = last_read.find(operation.key);
      const bool was_told = last != last_read.end() && operation.end < last->second;
      if (operation.outcome == Outcome::ok && !was_told) operation.outcome = Outcome::unknown;
    }
    observations.add(operation);
  }
  add_failures(observations, failures);
  return observations;
}

// Checks that the reader's first finding is a state that the key had, and that the store is
// linearizable from there on.
Loss broken_atomicity(const History& history, Failures failures) {
  std::map<std::uint64_t, const Operation*> found;  // for each key, the reader's first get
  History afterwards;
  for (const Operation& operation : history.operations()) {
    if (operation.client != failures.reader) continue;
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
                             other.version == operation.version && other.start <= operation.end;
                    });
    if (!written) {
      const std::string_view what = operation.outcome == Outcome::ok
                                        ? "the version that is found is none that it had"
                                        : "it is there, but none of its versions is whole";
      return {
          trace(history, operation.key, failures, fmt::format("key {}: {}", operation.key, what)),
          operation.key};
    }
    afterwards.add_preload({operation.key, 1, operation.version});
  }
  return broken(afterwards, afterwards, failures, {});
}

}  // namespace

Verdict judge_crash(const History& history, std::span<const Time> times, std::uint32_t reader,
                    const std::string& problem, const ToJudge& judged) {
  const Failures failures{times, reader};
  Verdict verdict;
  if (!problem.empty()) {
    verdict.break_all({trace(history, std::nullopt, failures, problem)});
    return verdict;
  }
  History with_failure = history;
  add_failures(with_failure, failures);
  const auto judge = [&](Condition condition, const History& some, history::Promise promise) {
    verdict.set(condition, broken(some, with_failure, failures, promise));
  };
  judge(Condition::durable, with_failure, {});
  if (verdict.holds(Condition::durable)) return verdict;
  if (judged[Condition::acknowledged]) {
    judge(Condition::acknowledged, writes_of(history, failures), {});
  }
  if (judged[Condition::observed]) {
    judge(Condition::observed, observations_of(history, failures), {});
  }
  if (!judged.any_of({Condition::ordered, Condition::atomic})) return verdict;
  judge(Condition::ordered, with_failure, {.undone = history::Promise::Undone::last_version});
  if (verdict.holds(Condition::ordered) || !judged[Condition::atomic]) return verdict;
  verdict.set(Condition::atomic, broken_atomicity(history, failures));
  return verdict;
}

}  // namespace perdura::services
