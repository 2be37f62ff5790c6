// manifest.json: what makes the rows of a result folder reproducible (docs/results.md). It is the
// only file of the folder that holds a date, so that the others are the same in every run that
// gives the same results.
#pragma once

#include <cstdint>
#include <string>

namespace perdura::harness {

struct MachineInfo {
  std::string host;
  std::string kernel;
  std::string cpu;       // model
  unsigned cores = 0;    // that this process may use
  std::string governor;  // of CPU 0; "unknown" if the machine does not say
};
MachineInfo this_machine();

enum class RunStatus : std::uint8_t { running, complete, interrupted, failed };

struct Manifest {
  std::string experiment;
  std::string platform;
  bool modelled = false;
  std::string profile;       // "host" on real platforms
  std::string profile_text;  // the profile's file; empty on real platforms
  std::uint64_t seed = 0;
  std::uint64_t repetitions = 1;
  int mpi_ranks = 1;
  std::size_t points = 0;  // that the sweep has, repetitions included
  std::size_t points_done = 0;
  RunStatus status = RunStatus::running;
  std::string started;  // UTC, ISO 8601
  std::string command_line;
  MachineInfo machine;
};

std::string to_json(const Manifest& manifest);

// The present moment as in Manifest::started.
std::string utc_now();

}  // namespace perdura::harness
