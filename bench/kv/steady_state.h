// Whether a rate has stopped to rise or fall: the criterion by which a warm-up ends.
#pragma once

#include <cstdint>
#include <deque>

#include "platform/base/units.h"

namespace perdura::bench {

// Fits a line by least squares to the rate over a sliding window, which is cut into kPieces, and
// looks by how much the line rises or falls within the window, as a part of the mean rate.
class SteadyState {
 public:
  static constexpr std::size_t kPieces = 10;

  // `slope`: the part up to which the rate counts as steady, such as 0.02.
  SteadyState(double slope, Picoseconds window) : slope_(slope), piece_(window / kPieces) {}

  // How often a sample is due.
  Picoseconds interval() const { return piece_; }

  // Adds how many operations have ended by a time later than the last one's. True if a whole window
  // has been seen and the rate is steady within it. A rate of 0 is not.
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
