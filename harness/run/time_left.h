// Estimates the remaining time of work in many parts from the costs of finished parts. Some kinds
// of parts cost fifty times as much as others, and their order is not random, so an average over
// all parts would mislead most of the time; therefore each kind has its own average.
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

  // `parts` has the number of parts of each kind.
  explicit TimeLeft(const std::map<std::string, std::size_t>& parts);

  // Reports that a part of a known kind has ended; `cost` is its duration.
  void ended(const std::string& kind, Seconds cost);

  // `elapsed` is the time since the first part began; several workers share the parts, so it is not
  // the sum of their costs. Returns nullopt until a part of each kind has ended.
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
