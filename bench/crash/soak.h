// Tries generated runs of systems (generated_run.h) with random tapes, and reports each run that
// kept less than the table of guarantees (explored.h) says of its system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/crash/explanation/diagram.h"
#include "bench/crash/explored.h"
#include "bench/crash/generated_run.h"
#include "platform/pmem/model/tape.h"
#include "platform/sim/kernel/profile.h"
#include "services/guarantee.h"
#include "services/service.h"

namespace perdura::bench {

// A system, how it is run, and on what kind of server.
struct SoakCase {
  services::ServedSystem system;
  ExploredSetting setting;
  pmem::PersistenceModel model;
  services::GuaranteeLevel expected{};

  services::CrashSetup setup() const {
    return {.model = model, .parameters = setting.parameters, .correct = setting.correct};
  }
  std::string name() const;  // "erda, persist_before_update on dmp ddio"
};

// All settings of the systems on all models for which the table has a level.
std::vector<SoakCase> soak_cases(const std::vector<services::ServedSystem>& systems);

// The outcome of one run.
struct SoakRun {
  services::GuaranteeLevel kept{};
  std::string loss;  // what the strongest level that was expected lost; empty if nothing
  std::string events;
  std::uint32_t failures = 0;
};
SoakRun run_once(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape);

// The same run once more, explained.
Diagram explain(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape);

// A run that kept less than expected, made as simple as possible.
struct SoakFinding {
  SoakCase where;
  std::uint64_t seed = 0;
  std::string tape;
  SoakRun run;

  std::string text() const;
};

// Runs the case with the tape of this seed. If it keeps less than expected, returns the shrunk
// finding. `failures`: receives the number of failures in the run.
std::optional<SoakFinding> soak(const SoakCase& one, const sim::Profile& profile,
                                std::uint64_t seed, std::uint32_t& failures);

}  // namespace perdura::bench
