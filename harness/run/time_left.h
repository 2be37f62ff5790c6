// The time that work of many parts still takes, from the costs of those that have ended. Parts of
// different kinds may cost fifty times as much as others, and come in an order that is not random,
// so that an average over all parts would mislead for most of the time: each kind has its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace perdura::harness {

class TimeLeft {
 public:
  using Seconds = std::chrono::duration<double>;

  // How many parts there are of each kind.
  explicit TimeLeft(const std::map<std::string, std::size_t>& parts);

  // A part of a kind that was given has ended; `cost` is the time from its beginning to its end.
  void ended(const std::string& kind, Seconds cost);

  // `elapsed` is the time since the first part began: several workers share the parts, so it is not
  // the sum of their costs. Unknown until a part of each kind has ended.
  std::optional<Seconds> left(Seconds elapsed) const;

 private:
  struct Kind {
    std::size_t parts = 0;
    std::size_t ended = 0;
    Seconds cost{};
  };
  std::map<std::string, Kind> kinds_;
};

}  // namespace perdura::harness
