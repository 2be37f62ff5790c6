// Estimates how long a sweep will take from the times of an earlier run, never without one. The
// effect of another machine, build or load cannot be predicted, so an estimate names its source.
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

// The times of a result folder (times.csv).
struct PastRun {
  struct Cost {
    double seconds = 0;
    double operations = 0;
  };
  std::filesystem::path folder{};
  std::map<std::string, Cost, std::less<>> by_label{};  // all repetitions of a point together
  Cost all{};
};

// Throws UsageError if the folder does not tell times, or none that hold for the experiment: what
// ends by time (duration_ms, ramp_ms, a steady state) or comes at a given rate (an open loop) does
// not take time in proportion to its operations, so only a run of the very same experiment tells.
PastRun read_past_run(const std::filesystem::path& folder, const Experiment& experiment);

// Of the folders in `out` that hold results of the experiment on the platform and tell its time,
// the one written last; nothing if there is none.
std::optional<PastRun> find_past_run(const std::filesystem::path& out, const Experiment& experiment,
                                     const std::string& platform);

struct Estimate {
  std::vector<double> seconds{};  // of each point, in one process on sim, in all together on shm
  double total = 0;               // seconds
  std::size_t of_same_point = 0;  // points whose own time was known; the others' is by operation
};

// A point is estimated from the earlier point with the same label, in proportion to its operations;
// a point that was not run before, from the average time per operation.
Estimate estimate(std::span<const Point> points, const PastRun& past);

}  // namespace perdura::harness
