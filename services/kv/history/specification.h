// The sequential specification of a key: the possible answers of its operations, and the changes
// that a power failure may undo. It defines what services/kv/history/checker.h decides efficiently.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "services/kv/history/checker.h"
#include "services/linearizability.h"

namespace perdura::services {

struct KeySpecification {
  struct State {
    std::optional<std::uint64_t> version;   // none: the key is absent
    std::optional<std::uint64_t> previous;  // before its last change
    bool exposed = false;                   // true if a power failure may undo that change
    auto operator<=>(const State&) const = default;
  };
  using Operation = history::Operation;

  std::optional<std::uint64_t> at_first{};
  history::Promise promise{};

  State initial() const { return {at_first, std::nullopt, false}; }

  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    switch (operation.outcome) {
      case history::Outcome::torn:
        return {};
      case history::Outcome::refused:
        return {state};
      case history::Outcome::not_found:
        return state.version ? std::vector<State>{} : std::vector{state};
      case history::Outcome::ok:
      case history::Outcome::unknown:
        break;
    }
    switch (operation.kind) {
      case history::Kind::get:
        if (!answered) return {state};
        return state.version == operation.version ? std::vector{state} : std::vector<State>{};
      case history::Kind::put:
        return {changed(state, operation.version)};
      case history::Kind::erase:
        return state.version ? std::vector{changed(state, std::nullopt)} : std::vector<State>{};
    }
    return {};
  }

  // A state that has survived one power failure survives all later ones.
  std::vector<State> after_failure(const State& state) const {
    const State kept{state.version, std::nullopt, false};
    if (!state.exposed) return {kept};
    return {kept, {state.previous, std::nullopt, false}};
  }

 private:
  State changed(const State& state, std::optional<std::uint64_t> version) const {
    if (promise.undone == history::Promise::Undone::nothing) return {version, std::nullopt, false};
    return {version, state.version, true};
  }
};

// All operations of the history of a single key, as calls.
std::vector<Call<history::Operation>> calls_of(const history::History& history);

}  // namespace perdura::services
