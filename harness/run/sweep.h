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
  // The folder of a sweep to finish, which says all of the above; empty: a new sweep.
  std::filesystem::path interrupted{};
  IfDamaged if_damaged = IfDamaged::refuse;    // its journal
  std::string command_line{};                  // for the manifest
  std::vector<ResponderProperty> responder{};  // of this rank's host, for the manifest
  bool quiet = false;                          // no progress
  // A rank that is silent for so long has ended the run (heartbeat.h); 0: ranks are waited for
  std::chrono::milliseconds heartbeat{};
};

// Every rank calls it. Throws UsageError before anything has run; afterwards problems are verdicts
// in the results, and the answer is `failed` if any point is not valid or the sweep was
// interrupted, and `usage` if a point turned out to be impossible.
ExitCode run_experiment(const RunRequest& request, const Locations& locations,
                        std::span<const Driver* const> drivers, Ranks& ranks);

}  // namespace perdura::harness
