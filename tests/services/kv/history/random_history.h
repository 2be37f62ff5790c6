// Small histories of one key: what a store that keeps its promise might have answered, and often
// something in it changed afterwards.
#pragma once

#include <algorithm>
#include <optional>
#include <random>

#include "services/kv/history/history.h"

namespace perdura::history::test {

struct Shape {
  int operations = 8;
  int times = 24;  // few: many operations are concurrent, and many times equal
  int puts = 4;    // shares of the kinds
  int gets = 4;
  int erases = 2;
  int failures = 0;
  int lost_of_ten = 1;  // operations that are never answered
};

class RandomHistory {
 public:
  RandomHistory(std::mt19937_64& random, Shape shape) : random_(random), shape_(shape) {}

  History make() {
    plan();
    play();
    for (int changes = below(5); changes > 0 && !operations_.empty(); --changes) distort();
    History history;
    history.add(operations_);
    for (const Time failure : failures_) history.add_power_failure(failure);
    if (preloaded_) history.add_preload({.first = 1, .keys = 1, .version = 100});
    return history;
  }

 private:
  struct Moment {
    Time when;
    std::optional<std::size_t> operation;  // else a power failure
  };

  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  Time time() { return Time(Picoseconds(below(shape_.times))); }

  void plan() {
    operations_.clear();
    failures_.clear();
    preloaded_ = below(3) == 0;
    const int count = 2 + below(shape_.operations - 1);
    for (int i = 0; i < count; ++i) {
      Operation operation{.key = 1, .client = static_cast<std::uint32_t>(i)};
      operation.start = time();
      operation.end = operation.start + Picoseconds(below(shape_.times / 2));
      const int kind = below(shape_.puts + shape_.gets + shape_.erases);
      operation.kind = kind < shape_.puts                 ? Kind::put
                       : kind < shape_.puts + shape_.gets ? Kind::get
                                                          : Kind::erase;
      if (operation.kind == Kind::put) operation.version = static_cast<std::uint64_t>(i);
      operations_.push_back(operation);
    }
    for (int i = 0; i < shape_.failures; ++i) failures_.push_back(time());
  }

  void play() {
    std::vector<Moment> moments;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const Operation& operation = operations_[i];
      const auto length = (operation.end - operation.start).count();
      moments.push_back({operation.start + Picoseconds(below(static_cast<int>(length) + 1)), i});
    }
    for (const Time failure : failures_) moments.push_back({failure, std::nullopt});
    std::shuffle(moments.begin(), moments.end(), random_);
    std::stable_sort(moments.begin(), moments.end(),
                     [](const Moment& a, const Moment& b) { return a.when < b.when; });
    std::optional<std::uint64_t> content;
    if (preloaded_) content = 100;
    std::optional<std::uint64_t> previous = content;
    for (const Moment& moment : moments) {
      if (!moment.operation) {
        if (below(2) == 0) content = previous;
        previous = content;
      } else {
        play(operations_[*moment.operation], content, previous);
      }
    }
  }

  void play(Operation& operation, std::optional<std::uint64_t>& content,
            std::optional<std::uint64_t>& previous) {
    const bool lost = below(10) < shape_.lost_of_ten;
    operation.outcome = lost ? Outcome::unknown : Outcome::ok;
    if (lost && below(2) == 0) return;
    if (operation.kind == Kind::put) {
      previous = content;
      content = operation.version;
    } else if (!content) {
      if (!lost) operation.outcome = Outcome::not_found;
    } else if (operation.kind == Kind::get) {
      operation.version = *content;
    } else {
      previous = content;
      content.reset();
    }
  }

  void distort() {
    Operation& operation = operations_[random_() % operations_.size()];
    switch (below(4)) {
      case 0:
        operation.start = time();
        operation.end = std::max(operation.end, operation.start);
        break;
      case 1:
        operation.end = operation.start + Picoseconds(below(4));
        break;
      case 2:
        if (operation.kind == Kind::get && operation.outcome == Outcome::ok) {
          operation.version = static_cast<std::uint64_t>(below(4));
        } else if (operation.kind != Kind::put && operation.outcome != Outcome::unknown) {
          operation.outcome = operation.outcome == Outcome::ok ? Outcome::not_found : Outcome::ok;
        }
        break;
      default:
        operations_.erase(operations_.begin() + (&operation - operations_.data()));
        break;
    }
  }

  std::mt19937_64& random_;
  Shape shape_;
  std::vector<Operation> operations_;
  std::vector<Time> failures_;
  bool preloaded_ = false;
};

}  // namespace perdura::history::test
