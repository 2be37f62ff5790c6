#include "services/kv/history/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "platform/base/error.h"
#include "services/kv/history/index_table.h"
#include "services/kv/history/key_history.h"
#include "services/kv/history/key_search.h"
#include "services/kv/history/specification.h"

namespace perdura::history {
namespace {

// The indices of the operations, grouped by key in the order of the keys' first operations.
struct Groups {
  std::vector<std::uint32_t> members;
  std::vector<std::uint32_t> ends;  // for each key, the end of its group in `members`
};

Groups group_by_key(std::span<const Operation> operations) {
  Groups groups;
  IndexTable keys;
  keys.clear();
  std::vector<std::uint32_t>& counts = groups.ends;
  for (const Operation& operation : operations) {
    const std::uint32_t key =
        keys.find_or_add(operation.key, static_cast<std::uint32_t>(counts.size()));
    if (key == counts.size()) counts.push_back(0);
    ++counts[key];
  }
  std::uint32_t start = 0;
  for (std::uint32_t& count : counts) {
    const std::uint32_t next = start + count;
    count = start;
    start = next;
  }
  groups.members.resize(operations.size());
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    // `counts` holds the next free index of each group; at the end it holds the end of each group.
    groups.members[counts[keys.find(operations[i].key)]++] = i;
  }
  return groups;
}

std::optional<std::uint64_t> initial_version(const History& history, std::uint64_t key) {
  for (const History::Preload& preload : history.preloads()) {
    if (key >= preload.first && key - preload.first < preload.keys) return preload.version;
  }
  return std::nullopt;
}

// True if two puts that may have taken effect wrote the same version, or one that the key held
// initially. Then reads do not show which of them they have seen.
bool repeats_versions(const std::vector<Operation>& operations,
                      std::optional<std::uint64_t> initial) {
  std::vector<std::uint64_t> versions;
  if (initial) versions.push_back(*initial);
  for (const Operation& operation : operations) {
    if (operation.kind == Kind::put && operation.outcome != Outcome::refused) {
      versions.push_back(operation.version);
    }
  }
  std::sort(versions.begin(), versions.end());
  return std::adjacent_find(versions.begin(), versions.end()) != versions.end();
}

// Decides a key by the general search, which needs no version to be unique.
KeySearch::Result search_generally(const std::vector<Operation>& operations,
                                   std::optional<std::uint64_t> initial, Promise promise,
                                   const std::vector<Time>& failures, Violation& violation) {
  using services::Linearizability;
  std::vector<services::Call<Operation>> calls;
  for (const Operation& operation : operations) {
    const bool answered = operation.outcome != Outcome::unknown;
    if (operation.outcome == Outcome::refused || (!answered && operation.kind == Kind::get)) {
      continue;
    }
    if (answered && operation.end < operation.start) {
      violation = {operation.key, "an operation ended before it began", {operation}};
      return KeySearch::Result::violated;
    }
    calls.push_back({operation, operation.start, operation.end, answered});
  }
  const Linearizability found =
      services::check_linearizability(services::KeySpecification{initial, promise},
                                      std::span<const services::Call<Operation>>(calls), failures);
  if (found.accepted()) return KeySearch::Result::accepted;
  if (found.decision == Linearizability::Decision::undecided) return KeySearch::Result::undecided;
  const Operation& refused = calls[found.refused].operation;
  violation = {
      refused.key, "an operation is impossible after all that took effect before it", {refused}};
  return KeySearch::Result::violated;
}

}  // namespace

CheckResult check(const History& history, Promise promise) {
  if (history.size() >= std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError("a history of more than 4294967294 operations cannot be checked; record less");
  }
  std::vector<Time> failures;
  if (promise.undone == Promise::Undone::last_version) {
    failures.assign(history.power_failures().begin(), history.power_failures().end());
    std::sort(failures.begin(), failures.end());
  }
  const std::span<const Operation> all = history.operations();
  const Groups groups = group_by_key(all);

  CheckResult verdict;
  verdict.operations = all.size();
  verdict.keys = groups.ends.size();
  const auto violated = [&](Violation violation) {
    ++verdict.keys_violated;
    if (verdict.violations.size() < kMaxViolations) {
      verdict.violations.push_back(std::move(violation));
    }
  };
  std::vector<Operation> operations;
  KeyHistory key;
  KeySearch search;
  std::uint32_t start = 0;
  for (const std::uint32_t end : groups.ends) {
    operations.clear();
    for (; start < end; ++start) operations.push_back(all[groups.members[start]]);
    const auto initial = initial_version(history, operations.front().key);
    KeySearch::Result result{};
    Violation violation;
    if (repeats_versions(operations, initial)) {
      result = search_generally(operations, initial, promise, failures, violation);
    } else if (auto contradiction = key.assign(operations, initial)) {
      violated(std::move(*contradiction));
      continue;
    } else {
      result = search.run(key, failures);
      if (result == KeySearch::Result::violated) violation = search.violation();
    }
    switch (result) {
      case KeySearch::Result::accepted:
        break;
      case KeySearch::Result::violated:
        violated(std::move(violation));
        break;
      case KeySearch::Result::undecided:
        ++verdict.keys_undecided;
        break;
    }
  }
  return verdict;
}

std::string describe(const Violation& violation, std::string_view name) {
  std::string text = name.empty() ? fmt::format("key {}", violation.key) : std::string(name);
  text += ": " + violation.what;
  std::string_view separator = ": ";
  for (const Operation& operation : violation.operations) {
    text += separator;
    text += describe(operation);
    separator = "; ";
  }
  return text;
}

std::string describe(const CheckResult& verdict) {
  const std::string checked =
      fmt::format("{} operations on {} keys", verdict.operations, verdict.keys);
  if (verdict.accepted()) return checked + ": linearizable";
  if (verdict.keys_violated == 0) {
    return checked + fmt::format(": {} keys undecided", verdict.keys_undecided);
  }
  return checked + fmt::format(": {} keys violated; {}", verdict.keys_violated,
                               describe(verdict.violations.front()));
}

}  // namespace perdura::history
