// Decides whether a rate has stopped rising or falling: the criterion by which a warm-up ends.
#pragma once

#include <cstdint>
#include <deque>

#include "platform/base/units.h"

namespace perdura::bench {

// Fits a line by least squares to the rate in kPieces pieces of a sliding window. The criterion is
// how much the line rises or falls within the window, as a fraction of the mean rate.
class SteadyState {
 public:
  static constexpr std::size_t kPieces = 10;

  // `slope`: the largest such fraction at which the rate counts as steady, such as 0.02.
  SteadyState(double slope, Picoseconds window) : slope_(slope), piece_(window / kPieces) {}

  // The interval at which samples are due.
  Picoseconds interval() const { return piece_; }

  // Adds a sample: how many operations have ended by time `at`, which is later than that of the
  // previous sample. Returns whether a whole window has been seen and the rate is steady within it.
  // A rate of 0 is not steady.
  bool add(Time at, std::uint64_t operations);

 private:
  struct Sample {
    Time at;
    std::uint64_t operations;
  };

  double slope_;
  Picoseconds piece_;
  std::deque<Sample> window_;
};

}  // namespace perdura::bench
