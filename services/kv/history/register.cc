#include "services/kv/history/register.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace perdura::history {
namespace {

using Action = RegisterOperation::Action;
using Calls = std::vector<services::Call<RegisterOperation>>;
using services::Linearizability;

std::string describe(const RegisterOperation& operation, const RegisterValues& values) {
  const std::string& value = values.text_of(operation.value);
  const std::string& expected = values.text_of(operation.expected);
  switch (operation.action) {
    case Action::read:
      return fmt::format("a read of {}", value);
    case Action::write:
      return fmt::format("a write of {}", value);
    case Action::compare_set:
      return fmt::format("a compare-and-set from {} to {}", expected, value);
    case Action::compare_failed:
      return fmt::format("a compare-and-set that did not find {}", expected);
    case Action::append:
      return fmt::format("an append of {}", value);
    case Action::erase:
      return "a delete";
  }
  return "an operation";
}

// Leaves out writes that were never answered and whose value was not seen: if they took effect,
// their value was replaced before it could be seen, so any order is as good without them. An append
// or a delete sees any value.
Calls without_unseen(const Calls& calls) {
  std::set<RegisterValues::Id> seen;
  for (const auto& call : calls) {
    const RegisterOperation& operation = call.operation;
    if (operation.action == Action::append || operation.action == Action::erase ||
        operation.action == Action::compare_failed) {
      return calls;
    }
    if (operation.action == Action::read) seen.insert(operation.value);
    if (operation.action == Action::compare_set) seen.insert(operation.expected);
  }
  Calls left;
  for (const auto& call : calls) {
    const bool unseen = !call.answered && !seen.contains(call.operation.value);
    if (!unseen) left.push_back(call);
  }
  return left;
}

}  // namespace

RegisterValues::Id RegisterValues::id_of(const std::string& text) {
  if (text == texts_[kAbsent]) return kAbsent;
  const auto [found, is_new] = ids_.try_emplace(text, static_cast<Id>(texts_.size()));
  if (is_new) texts_.push_back(text);
  return found->second;
}

RegisterValues::Id RegisterValues::concatenated(Id first, Id second) {
  const auto characters = [&](Id id) {
    const std::string& text = texts_[id];
    if (id == kAbsent) return std::string();
    return text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
  };
  const std::string both = characters(first) + characters(second);
  return both.empty() ? kAbsent : id_of('"' + both + '"');
}

std::vector<RegisterValues::Id> RegisterSpecification::after(State state,
                                                             const Operation& operation,
                                                             bool answered) const {
  const bool unseen = (state & kUnseen) != 0;
  const RegisterValues::Id holds = state & ~kUnseen;
  const bool anything = holds == RegisterValues::kAnything;
  switch (operation.action) {
    case Action::read:
      if (!answered) return {state};
      return anything || holds == operation.value ? std::vector{operation.value}
                                                  : std::vector<State>{};
    case Action::write:
      if (unseen) return {};
      if (answered) return {operation.value};
      return {holds == operation.value ? state : operation.value | kUnseen};
    case Action::compare_set:
      if (anything || holds == operation.expected) return {operation.value};
      return {};
    case Action::compare_failed:
      return holds != operation.expected ? std::vector{holds} : std::vector<State>{};
    case Action::append:
      return {values->concatenated(holds, operation.value)};
    case Action::erase:
      if (holds == RegisterValues::kAbsent) return {};
      return {RegisterValues::kAbsent};
  }
  return {};
}

RegisterVerdict check_registers(RegisterHistory& history, const RegisterLimits& limits) {
  using Decision = Linearizability::Decision;
  std::size_t operations = 0;
  bool appends = false;
  for (const auto& [name, calls] : history.registers) {
    operations += calls.size();
    for (const auto& call : calls) appends = appends || call.operation.action == Action::append;
  }
  const std::string checked =
      fmt::format("{} operations on {} keys: ", operations, history.registers.size());
  if (!history.not_known.empty()) {
    return {Decision::undecided, checked + "undecided: " + history.not_known};
  }
  const auto check = [&](const Calls& calls, RegisterValues::Id at_first) {
    const RegisterSpecification specification{&history.values, at_first};
    return services::check_linearizability(
        specification, std::span<const services::Call<RegisterOperation>>(calls), {},
        limits.configurations);
  };
  const RegisterValues::Id at_first =
      limits.at_first ? history.values.id_of(*limits.at_first) : RegisterValues::kAbsent;
  const bool may_be_other = !limits.at_first && !history.begins_empty && !appends;
  std::string undecided;
  for (const auto& [name, all] : history.registers) {
    const std::string where = name.empty() ? "" : fmt::format("key {}: ", name);
    const Calls calls = without_unseen(all);
    const Linearizability found = check(calls, at_first);
    if (found.decision == Decision::linearizable) continue;
    if (found.decision == Decision::undecided) {
      undecided = fmt::format(
          "{}the search ended after {} configurations; give it more by "
          "--configurations",
          where, limits.configurations);
      continue;
    }
    if (may_be_other && check(calls, RegisterValues::kAnything).decision != Decision::violated) {
      undecided =
          fmt::format("{}it depends on what it held at first; give that by --initial", where);
      continue;
    }
    const RegisterOperation& refused = calls[found.refused].operation;
    return {Decision::violated,
            fmt::format("{}violated; {}{}, which begins in line {}, is impossible after what took "
                        "effect before it",
                        checked, where, describe(refused, history.values), refused.line)};
  }
  if (!undecided.empty()) return {Decision::undecided, checked + "undecided: " + undecided};
  return {Decision::linearizable, checked + "linearizable"};
}

}  // namespace perdura::history
