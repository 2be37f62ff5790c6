// Runs an experiment: plans its points, runs them on this process or over the ranks of mpirun, and
// writes the result folder.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "harness/program/exit_code.h"
#include "harness/results/journal.h"
#include "harness/results/machine.h"
#include "harness/run/prepare.h"

namespace perdura::harness {

struct RunRequest {
  ExperimentRequest experiment{};
  std::filesystem::path out{};  // empty: out/<experiment>-<platform>-<n>
  // The folder of a sweep to be finished, which determines all of the above; empty: a new sweep.
  std::filesystem::path interrupted{};
  IfDamaged if_damaged = IfDamaged::refuse;    // the journal of `interrupted`
  std::string command_line{};                  // for the manifest
  std::vector<ResponderProperty> responder{};  // properties of this rank's host, for the manifest
  bool quiet = false;                          // print no progress
  // Silence of a rank after which the run ends (heartbeat.h); 0: no limit.
  std::chrono::milliseconds heartbeat{};
};

// Collective. Throws UsageError before anything has run. Afterwards problems become verdicts in the
// results. Returns `failed` if any point is not valid or the sweep was interrupted, and `usage` if
// a point turned out to be impossible.
ExitCode run_experiment(const RunRequest& request, const Locations& locations,
                        std::span<const Driver* const> drivers, Ranks& ranks);

}  // namespace perdura::harness
