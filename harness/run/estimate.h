// Estimates how long a sweep will take from the times of an earlier run; without one there is no
// estimate. The effect of another machine, build or load cannot be predicted, so an estimate names
// its source.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/run/point.h"

namespace perdura::harness {

// The times in a result folder (times.csv).
struct PastRun {
  struct Cost {
    double seconds = 0;
    double operations = 0;
  };
  std::filesystem::path folder{};
  std::map<std::string, Cost, std::less<>> by_label{};  // all repetitions of a point summed
  Cost all{};
};

// Throws UsageError if the folder has no usable times, or if they do not apply to the experiment: a
// point that ends by time (duration_ms, ramp_ms, a steady state) or is driven at a given rate (an
// open loop) does not take time in proportion to its operations, so only a run of the very same
// experiment predicts it.
PastRun read_past_run(const std::filesystem::path& folder, const Experiment& experiment);

// Returns the most recently written folder in `out` that has results of the experiment on the
// platform and usable times; nullopt if there is none. Throws UsageError if `out` is not a folder.
std::optional<PastRun> find_past_run(const std::filesystem::path& out, const Experiment& experiment,
                                     const std::string& platform);

struct Estimate {
  // Per point; in one process on sim, in all processes together on shm.
  std::vector<double> seconds{};
  double total = 0;  // seconds
  // Points timed by an earlier run of the same point; the others by average.
  std::size_t of_same_point = 0;
};

// Estimates a point from the earlier point with the same label, in proportion to its operations,
// or, if it was not run before, from the average time per operation.
Estimate estimate(std::span<const Point> points, const PastRun& past);

}  // namespace perdura::harness
