// The arguments of `perdura crash`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explore/soak.h"
#include "program/commands.h"
#include "program/configuration_options.h"

namespace perdura::program {

struct CrashArguments {
  std::string target;
  ConfigurationOptions configuration;
  bool exhaustive = false;
  std::uint64_t samples = 0;  // 0: the target's default
  std::uint64_t seed = 1;
  bool steps = false;
  std::vector<std::string> parameters;  // NAME=VALUE, for a system
  std::optional<std::uint64_t> from;    // first crash point of a system's history
  std::optional<std::uint64_t> to;
  std::string persistence = "paper";    // how a system's puts persist: "paper" or "correct"
  std::optional<std::string> schedule;  // history of a system; absent: all
  // Number of a system's servers that fail at once; absent: all.
  std::optional<std::uint64_t> failing;
  std::optional<std::string> failure;  // kind of failure of a system; absent: power
  std::optional<std::string> profile;  // for a system; absent: erda-connectx3
  std::optional<std::string> images;   // for a system: recoveries at a crash point, or "all"
  std::uint64_t threads = 0;           // `images` only; 0: one per hardware thread of the host
  // For a system: explore schedules instead of the crash points of its histories.
  std::optional<std::string> strategy;
  std::optional<std::uint64_t> deviations;
  std::optional<std::uint64_t> depth;
  std::optional<std::uint64_t> histories;
  std::optional<std::uint64_t> schedules;
  bool late_placements = false;
  std::optional<std::uint64_t> sequences;  // number of operations in each sequence
  std::optional<std::string> expected;     // a guarantee level; absent: durable
  std::optional<std::uint64_t> failures;
  std::optional<std::uint64_t> stride;
  std::string folder = "out/crash";  // where findings go
  bool as_json = false;
  // The file of a finding; then only `diagram` may be given, too.
  std::optional<std::string> replay;
  std::optional<std::string> diagram;  // file for a space-time diagram of a loss, as SVG
};

bool is_system(const std::string& name);
// Throws UsageError if a diagram was asked for and cannot be written where it is to go.
void check_diagram(const CrashArguments& arguments);
// Explores a system. Returns `done` if acknowledged writes are durable on all persistence models.
harness::ExitCode crash_system(const CrashArguments& arguments, const CommandContext& context);

// Explores a system with a strategy (explore/schedules.h).
harness::ExitCode crash_schedules(const CrashArguments& arguments, const CommandContext& context);

// Explores a system with every short sequence of operations (explore/sequences.h).
harness::ExitCode crash_sequences(const CrashArguments& arguments, const CommandContext& context);

// The system's parameters, and its persistence models, that a command's arguments select. Both
// throw UsageError.
GivenParameters given_parameters(const services::SystemInfo& system,
                                 const CrashArguments& arguments);
std::vector<pmem::PersistenceModel> system_models(const ConfigurationOptions& options);

// Repeats a finding of `perdura soak`. Returns `failed` if the loss occurs again.
harness::ExitCode replay_finding(const CrashArguments& arguments, const CommandContext& context);

}  // namespace perdura::program
