// The arguments of `perdura crash`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/crash/soak.h"
#include "bench/perdura/commands.h"
#include "bench/perdura/configuration_options.h"

namespace perdura::harness {

struct CrashArguments {
  std::string target;
  ConfigurationOptions configuration;
  bool exhaustive = false;
  std::uint64_t samples = 0;  // 0: the target's default
  std::uint64_t seed = 1;
  bool steps = false;
  std::vector<std::string> parameters;  // NAME=VALUE, of a system
  std::optional<std::uint64_t> from;    // moment of a system's history
  std::optional<std::uint64_t> to;
  std::string persistence = "paper";     // of a system's puts, or "correct"
  std::optional<std::string> schedule;   // of a system's history; absent: all
  std::optional<std::uint64_t> failing;  // of a system's servers, at once; absent: all
  std::optional<std::string> failure;    // of a system: absent: of power
  std::optional<std::string> profile;    // of a system: default erda-connectx3
  std::optional<std::string> images;     // of a system: recoveries at a moment, or "all"
  std::uint64_t threads = 0;             // with `images`; 0: one for each of the host's
  // Of schedules of a system, in place of moments of its histories.
  std::optional<std::string> strategy;
  std::optional<std::uint64_t> deviations;
  std::optional<std::uint64_t> depth;
  std::optional<std::uint64_t> histories;
  std::optional<std::uint64_t> schedules;
  bool late_placements = false;
  std::optional<std::uint64_t> sequences;  // of so many operations
  std::optional<std::string> expected;     // a level; absent: durable
  std::optional<std::uint64_t> failures;
  std::optional<std::uint64_t> stride;
  std::string folder = "out/crash";  // for what is found
  bool as_json = false;
  std::optional<std::string> replay;   // the file of a finding; then only `diagram` is given, too
  std::optional<std::string> diagram;  // file for a space-time diagram of a loss, as SVG
};

bool is_system(const std::string& name);
// Explores a system. Returns `done` if what it acknowledges is durable on all persistence models.
ExitCode crash_system(const CrashArguments& arguments, const CommandContext& context);

// The same by a strategy (bench/crash/schedules.h).
ExitCode crash_schedules(const CrashArguments& arguments, const CommandContext& context);

// The same with every short sequence of operations (bench/crash/sequences.h).
ExitCode crash_sequences(const CrashArguments& arguments, const CommandContext& context);

// What the parameters and the configuration of a command say of a system. Throws UsageError.
GivenParameters given_parameters(const services::SystemInfo& system,
                                 const CrashArguments& arguments);
std::vector<pmem::PersistenceModel> system_models(const ConfigurationOptions& options);

// Repeats what `perdura soak` found. Returns `failed` if it is found again.
ExitCode replay_finding(const CrashArguments& arguments, const CommandContext& context);

}  // namespace perdura::harness
