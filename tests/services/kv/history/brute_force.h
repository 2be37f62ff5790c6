// Whether a history of one key is linearizable, decided in the plainest way: every order that the
// times allow is tried. Shares nothing with the checkers that it is compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "services/kv/history/checker.h"

namespace perdura::history::test {

class BruteForce {
 public:
  BruteForce(std::span<const Operation> operations, std::span<const Time> failures, Promise promise)
      : operations_(operations), failures_(failures.begin(), failures.end()), promise_(promise) {
    std::sort(failures_.begin(), failures_.end());
  }

  bool linearizable() {
    placed_.assign(operations_.size(), false);
    return extend(0, {});
  }

 private:
  struct Key {
    std::optional<std::uint64_t> version;
    std::optional<std::uint64_t> before_last_change;
    bool may_be_undone = false;  // the last change
  };

  // The time at which the operation has taken effect at the latest, if it must.
  Time end(const Operation& operation) const {
    return operation.outcome == Outcome::unknown ? Time::max() : operation.end;
  }

  // Whether no answered operation and no failure that is still to be placed lies before this time.
  bool may_follow(Time start, std::size_t failures_placed) const {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (!placed_[i] && end(operations_[i]) < start) return false;
    }
    return failures_placed == failures_.size() || failures_[failures_placed] >= start;
  }

  bool extend(std::size_t failures_placed, const Key& key) {
    bool complete = failures_placed == failures_.size();
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      complete = complete && (placed_[i] || operations_[i].outcome == Outcome::unknown);
    }
    if (complete) return true;
    if (failures_placed < failures_.size() &&
        may_follow(failures_[failures_placed], failures_placed)) {
      if (extend(failures_placed + 1, {key.version, std::nullopt, false})) return true;
      if (key.may_be_undone &&
          extend(failures_placed + 1, {key.before_last_change, std::nullopt, false})) {
        return true;
      }
    }
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (placed_[i] || !may_follow(operations_[i].start, failures_placed)) continue;
      const std::optional<Key> next = after(key, operations_[i]);
      if (!next) continue;
      placed_[i] = true;
      const bool found = extend(failures_placed, *next);
      placed_[i] = false;
      if (found) return true;
    }
    return false;
  }

  std::optional<Key> after(const Key& key, const Operation& operation) const {
    if (operation.outcome == Outcome::torn) return std::nullopt;
    if (operation.outcome == Outcome::refused) return key;
    if (operation.outcome == Outcome::not_found) {
      return key.version ? std::nullopt : std::optional(key);
    }
    switch (operation.kind) {
      case Kind::get:
        if (operation.outcome == Outcome::unknown) return key;
        return key.version == operation.version ? std::optional(key) : std::nullopt;
      case Kind::put:
        return changed(key, operation.version);
      case Kind::erase:
        return key.version ? std::optional(changed(key, std::nullopt)) : std::nullopt;
    }
    return std::nullopt;
  }

  Key changed(const Key& key, std::optional<std::uint64_t> version) const {
    return {version, key.version, promise_.undone == Promise::Undone::last_version};
  }

  std::span<const Operation> operations_;
  std::vector<Time> failures_;
  Promise promise_;
  std::vector<bool> placed_;
};

}  // namespace perdura::history::test
